package pathmgr

import (
	"fmt"
	"strings"
)

// Default is the policy of a connection that names none.
const Default = "fullmesh"

// byName lists the policies in order of their names.
var byName = []struct {
	name string
	make Factory
}{
	{"backup", newBackup},
	{"flowsize", FlowSize(FlowSizeConfig{})},
	{"freeway", Freeway(FreewayConfig{})},
	{"fullmesh", newFullMesh},
	{"mptcpd", Elimination{}.Factory()},
	{"ndiffports", NDiffPorts(DefaultDiffPorts)},
	{"signal", newSignal},
}

// ByName returns the policy called name. An empty name means [Default].
func ByName(name string) (Factory, error) {
	if name == "" {
		name = Default
	}
	for _, p := range byName {
		if p.name == name {
			return p.make, nil
		}
	}
	return nil, fmt.Errorf("path manager %q is unknown (known: %s)", name, strings.Join(Names(), ", "))
}

// Names returns the names that ByName knows, sorted.
func Names() []string {
	names := make([]string, len(byName))
	for i, p := range byName {
		names[i] = p.name
	}
	return names
}
