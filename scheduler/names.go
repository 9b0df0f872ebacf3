package scheduler

import (
	"fmt"
	"strings"
)

// Default is the scheduler of a connection that names none.
const Default = "minrtt"

// byName lists the policies in order of their names.
var byName = []struct {
	name string
	make Factory
}{
	{"minrtt", newMinRTT},
	{"roundrobin", RoundRobin(1)},
}

// ByName returns the scheduler called name. An empty name and the name
// "default" mean [Default].
func ByName(name string) (Factory, error) {
	if name == "" || name == "default" {
		name = Default
	}
	for _, p := range byName {
		if p.name == name {
			return p.make, nil
		}
	}
	return nil, fmt.Errorf("scheduler %q is unknown (known: %s)", name, strings.Join(Names(), ", "))
}

// Names returns the names that ByName knows, sorted, without the alias
// "default".
func Names() []string {
	names := make([]string, len(byName))
	for i, p := range byName {
		names[i] = p.name
	}
	return names
}
