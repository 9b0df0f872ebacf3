package cc

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Default is the congestion control of a connection that names none.
const Default = "default"

// byName lists the algorithms in order of their names.
var byName = []struct {
	name string
	make Factory
}{
	{"balia", newBALIAGroup},
	{"bbr", newBBRGroup},
	{"coupled", newCoupledGroup},
	{"coupled-bbr", CoupledBBR{}.Group},
	{"cubic", newCubicGroup},
	{"dctcp", DCTCP{}.Group},
	{Default, Detecting{}.Group},
	{"ewtcp", newEWTCPGroup},
	{"lia", newLIAGroup},
	{"lia-dctcp", newLIADCTCPGroup},
	{"lia-exact", newLIAExactGroup},
	{"mdtcp", newMDTCPGroup},
	{"mptcpd", newMPTCPDGroup},
	{"olia", newOLIAGroup},
	{"reno", newRenoGroup},
	{"semicoupled", SemiCoupled{}.Group},
	{"vegas", Vegas{}.Group},
	{"wvegas", WVegas{}.Group},
	{"xmp", XMP{}.Group},
}

// ByName returns the congestion control called name. An empty name means
// [Default].
func ByName(name string) (Factory, error) { return Registry(nil).ByName(name) }

// Names returns the names that ByName knows, sorted.
func Names() []string { return Registry(nil).Names() }

// Registry holds congestion controls of a program's own by their names,
// beside those of this package, which they may replace. A nil Registry has
// none. It may be used by several goroutines as long as none changes it.
type Registry map[string]Factory

// ByName returns the congestion control called name: the program's own, or
// that of this package. An empty name means [Default].
func (r Registry) ByName(name string) (Factory, error) {
	if name == "" {
		name = Default
	}
	if f := r[name]; f != nil {
		return f, nil
	}
	for _, a := range byName {
		if a.name == name {
			return a.make, nil
		}
	}
	return nil, fmt.Errorf("congestion control %q is unknown (known: %s)", name, strings.Join(r.Names(), ", "))
}

// Names returns the names that ByName knows, sorted.
func (r Registry) Names() []string {
	names := slices.Collect(maps.Keys(r))
	for _, a := range byName {
		names = append(names, a.name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
