package cc

import (
	"fmt"
	"strings"
)

// Default is the congestion control of a connection that names none.
const Default = "cubic"

// byName lists the algorithms in order of their names.
var byName = []struct {
	name string
	make Factory
}{
	{"cubic", newCubicGroup},
	{"lia", newLIAGroup},
	{"reno", newRenoGroup},
}

// ByName returns the congestion control called name. An empty name and the
// name "default" mean [Default].
func ByName(name string) (Factory, error) {
	if name == "" || name == "default" {
		name = Default
	}
	for _, a := range byName {
		if a.name == name {
			return a.make, nil
		}
	}
	return nil, fmt.Errorf("congestion control %q is unknown (known: %s)", name, strings.Join(Names(), ", "))
}

// Names returns the names that ByName knows, sorted, without the alias
// "default".
func Names() []string {
	names := make([]string, len(byName))
	for i, a := range byName {
		names[i] = a.name
	}
	return names
}
