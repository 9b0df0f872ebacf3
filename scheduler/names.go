package scheduler

import (
	"fmt"
	"strings"
)

// byName lists the policies in order of their names.
var byName = []struct {
	name string
	make Factory
}{
	{"ada", newADA},
	{"blest", newBLEST},
	{"capacity", newCapacity},
	{"daps", newDAPS},
	{Default, newDefault},
	{"dems", newDEMS},
	{"ecf", newECF},
	{"fsfs", FSFS(DefaultFSFSClasses)},
	{"jitter-aware", newJitterAware},
	{"linux", newLinux},
	{"minrtt", newMinRTT},
	{"minrtt-plain", newMinRTTPlain},
	{"opportunistic-redundant", newOpportunisticRedundant},
	{"otias", newOTIAS},
	{"qaware", newQAware},
	{"redundant", newRedundant},
	{"redundant-idle", newRedundantIdle},
	{"roundrobin", RoundRobin(1)},
	{"sctc-literal", SCTC(SCTCConfig{Mode: SCTCLiteral})},
	{"sctc-optimal", SCTC(SCTCConfig{Mode: SCTCOptimal})},
	{"sctc-planned", SCTC(SCTCConfig{Mode: SCTCPlanned})},
	{"stms", newSTMS},
	{"sttf", newSTTF},
	{"weighted", Weighted(equalWeights)},
}

// ByName returns the scheduler called name. An empty name means [Default].
func ByName(name string) (Factory, error) {
	if name == "" {
		name = Default
	}
	for _, p := range byName {
		if p.name == name {
			return p.make, nil
		}
	}
	return nil, fmt.Errorf("scheduler %q is unknown (known: %s)", name, strings.Join(Names(), ", "))
}

// Names returns the names that ByName knows, sorted.
func Names() []string {
	names := make([]string, len(byName))
	for i, p := range byName {
		names[i] = p.name
	}
	return names
}
