package experiment

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/gomptcp/gomptcp/internal/host"
	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/internal/pathmgr"
	"github.com/gomptcp/gomptcp/internal/sim"
)

// The power of a host in the experiments with MPTCP-D is modelled, in units of
// what it draws while it sends on one subflow: P0 + energySubflow for each
// subflow in use. The coefficient is fitted: four subflows then draw 12 % more
// than one, with which four disjoint paths save the 72 % that the paper's
// abstract has. No watt was measured.
const energySubflow = .04

// energyPower returns the power with so many subflows in use.
func energyPower(subflows float64) float64 { return 1 + energySubflow*(subflows-1) }

// dcLink is a link of a datacenter: 200 us of round trip, a queue of 250 packets
// that marks beyond 20.
func dcLink(rate float64) link.Config {
	return link.Config{
		Rate: rate, Delay: 100 * time.Microsecond, Overhead: ethernet,
		QueueBytes: 250 * (1500 + ethernet), MarkBytes: 20 * (1500 + ethernet),
	}
}

// hashed is two hosts with one address each and several links between two
// routers, over which subflows are spread by a hash of their ports.
type hashed struct {
	*sim.Sim
	a, b  *sim.Node
	from  *sim.Router
	links []*sim.Link
}

var hashedA, hashedB = netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.1.0.1")

func newHashed(u *Unit, links int) *hashed {
	s := sim.NewFast(u.Seed)
	h := &hashed{Sim: s, a: s.NewNode("a", host.Config{}), b: s.NewNode("b", host.Config{}), from: s.NewRouter("from")}
	to := s.NewRouter("to")
	s.Connect("a", sim.IfaceConfig{Node: h.a, Addrs: []netip.Addr{hashedA}}, sim.IfaceConfig{Router: h.from}, sim.Shape{MTU: u.Profile.MTU()})
	s.Connect("b", sim.IfaceConfig{Node: h.b, Addrs: []netip.Addr{hashedB}}, sim.IfaceConfig{Router: to}, sim.Shape{MTU: u.Profile.MTU()})
	for i := range links {
		l := dcLink(1e9)
		h.links = append(h.links, s.Connect(fmt.Sprintf("link%d", i), sim.IfaceConfig{Router: h.from}, sim.IfaceConfig{Router: to}, sim.Shape{AB: l, BA: l, MTU: u.Profile.MTU()}))
	}
	h.from.AddRoute(netip.MustParsePrefix("10.1.0.0/16"), h.links...)
	to.AddRoute(netip.MustParsePrefix("10.0.0.0/16"), h.links...)
	s.ComputeRoutes()
	return h
}

// conn returns the configuration of connections with eight subflows, those that
// share a link being given up if known says how that is found out: by the links
// that the routers take ("path"), by the marks ("marks"), or not at all ("").
func (h *hashed) conn(u *Unit, known string) host.ConnConfig {
	c := u.Conn("", "mptcpd", "")
	e := pathmgr.Elimination{Open: pathmgr.NDiffPorts(8), OpenAlways: true}
	switch known {
	case "":
		c.PathManager = e.Open
		return c
	case "path":
		e.PathOf = func(local, remote netip.AddrPort) string { return fmt.Sprint(h.from.Choice(local, remote)) }
	}
	c.PathManager = e.Factory()
	return c
}

// start begins a flow of size bytes to a port of its own.
func (h *hashed) start(c host.ConnConfig, port int, size int64, stay bool) *sim.Transfer {
	passive := c
	passive.PathManager = nil
	return h.StartTransfer(h.a, h.b, sim.TransferConfig{AB: size, ConnA: c, ConnB: passive, StayOpen: stay, To: netip.AddrPortFrom(hashedB, uint16(port))})
}

// active returns how many subflows of a connection are up and regular, and on
// how many links they are.
func (h *hashed) active(t *sim.Transfer) (subflows, links int) {
	seen := map[int]bool{}
	for _, s := range t.ConnA.AppendSubflows(nil) {
		if s.Up && s.Close == 0 && !s.Backup && !s.PeerBackup {
			subflows++
			seen[h.from.Choice(s.Local, s.Remote)] = true
		}
	}
	return subflows, len(seen)
}
