package experiment

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/gomptcp/gomptcp/internal/host"
	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/internal/sim"
)

// threeLinks is the laboratory of the slides: host A has one interface of 1
// Gb/s with three addresses, host B three of 10 Mb/s, all at one switch. The
// i-th addresses of both are one subnet.
type threeLinks struct {
	*sim.Sim
	A, B  *sim.Node
	Links []*sim.Link // B's; B is end A
	Trunk *sim.Link   // A's; A is end A
}

func (threeLinks) addrA(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(i), 1}) }
func (threeLinks) addrB(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(i), 2}) }

// newThreeLinks makes the laboratory; a and b configure the hosts.
func newThreeLinks(seed uint64, a, b host.Config) *threeLinks {
	s := sim.NewFast(seed)
	t := &threeLinks{Sim: s, A: s.NewNode("A", a), B: s.NewNode("B", b)}
	sw := s.NewRouter("switch")
	const delay = 500 * time.Microsecond
	trunk := sim.Symmetric("trunk", link.Config{Rate: 1e9, Delay: delay, Overhead: sim.OverheadEthernet})
	t.Trunk = s.Connect("", sim.IfaceConfig{Node: t.A, Addrs: []netip.Addr{t.addrA(0), t.addrA(1), t.addrA(2)}}, sim.IfaceConfig{Router: sw}, trunk)
	for i := range 3 {
		shape := sim.Symmetric(fmt.Sprintf("eth%d", i), link.Config{Rate: 10e6, Delay: delay, Overhead: sim.OverheadEthernet})
		l := s.Connect("", sim.IfaceConfig{Node: t.B, Addrs: []netip.Addr{t.addrB(i)}}, sim.IfaceConfig{Router: sw}, shape)
		t.Links = append(t.Links, l)
	}
	s.ComputeRoutes()
	return t
}

// params are those of the laboratory for a result file.
func (threeLinks) params() map[string]any {
	return map[string]any{"links Mb/s": []int{10, 10, 10}, "trunk Mb/s": 1000, "round trip ms": 2, "queue bytes": 65536, "overhead bytes": sim.OverheadEthernet}
}
