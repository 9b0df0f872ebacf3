package sim

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/gomptcp/gomptcp/cc"
	"github.com/gomptcp/gomptcp/internal/host"
	"github.com/gomptcp/gomptcp/internal/pathmgr"
	"github.com/gomptcp/gomptcp/scheduler"
)

// Pair is two hosts, A and B, joined by one or more links.
type Pair struct {
	*Sim
	A, B  *Node
	Links []*Link
	ipv6  bool
}

// PairConfig says what a Pair is like.
type PairConfig struct {
	Seed  uint64
	Fast  bool    // see NewFast
	Paths []Shape // one without a name is called pathI
	IPv6  bool
	// Mesh lets packets from each address reach every address of the other
	// host over the link of their source; without it each link reaches the
	// addresses at its own other end only.
	Mesh bool
	// Backup are the links that A asks B to spare.
	Backup []int
	Host   host.Config // of both hosts; see NewNode
}

// TwoHosts makes a pair. Link i joins A's address i to B's.
func TwoHosts(cfg PairConfig) *Pair {
	s := newSim(cfg.Seed, cfg.Fast)
	p := &Pair{Sim: s, A: s.NewNode("A", cfg.Host), B: s.NewNode("B", cfg.Host), ipv6: cfg.IPv6}
	var routes []netip.Prefix
	if cfg.Mesh {
		routes = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	}
	for i, shape := range cfg.Paths {
		l := s.Connect(cmp.Or(shape.Name, fmt.Sprintf("path%d", i)),
			IfaceConfig{Node: p.A, Addrs: []netip.Addr{p.AddrA(i)}, Routes: routes, Backup: slices.Contains(cfg.Backup, i)},
			IfaceConfig{Node: p.B, Addrs: []netip.Addr{p.AddrB(i)}, Routes: routes},
			shape)
		p.Links = append(p.Links, l)
	}
	return p
}

// AddrA returns the address of A on link i.
func (p *Pair) AddrA(i int) netip.Addr { return p.addr(i, 1) }

// AddrB returns the address of B on link i.
func (p *Pair) AddrB(i int) netip.Addr { return p.addr(i, 2) }

func (p *Pair) addr(link, end int) netip.Addr {
	if p.ipv6 {
		return netip.AddrFrom16([16]byte{0: 0xfd, 3: byte(link + 1), 15: byte(end)})
	}
	return netip.AddrFrom4([4]byte{10, 0, byte(link + 1), byte(end)})
}

// Port is where B listens, unless told otherwise.
const Port = 8080

// DefaultConn returns the configuration of a connection with the default
// policies.
func DefaultConn() host.ConnConfig {
	return ConnWith("", "", "")
}

// ConnWith returns the configuration of a connection with policies chosen by
// name; an unknown name panics.
func ConnWith(sched, congestion, manager string) host.ConnConfig {
	s, err := scheduler.ByName(sched)
	if err != nil {
		panic(err)
	}
	c, err := cc.ByName(congestion)
	if err != nil {
		panic(err)
	}
	m, err := pathmgr.ByName(manager)
	if err != nil {
		panic(err)
	}
	return host.ConnConfig{Scheduler: s, Congestion: c, PathManager: m}
}

// TransferConfig says what is to be sent.
type TransferConfig struct {
	AB, BA       int64   // bytes from A to B and back
	ReadA, ReadB float64 // bytes/s at which A and B read; 0 = at once
	ConnA, ConnB host.ConnConfig
	StayOpen     bool           // the connection is not closed when all has arrived
	MayAlter     bool           // a box on the way alters bytes
	To           netip.AddrPort // where A connects to; zero = B's first address and port
}

// Transfer is a connection from A to B under way, with a Program at each end.
type Transfer struct {
	ProgramA, ProgramB *Program
	ConnA, ConnB       *Conn // ConnB is nil until B accepted
	Listener           *host.Listener
}

// Start begins a transfer over a new connection from A to B's first address.
func (p *Pair) Start(cfg TransferConfig) *Transfer { return p.StartOn(Port, cfg) }

// StartOn is Start with a port of its own.
func (p *Pair) StartOn(port uint16, cfg TransferConfig) *Transfer {
	listen := netip.AddrPortFrom(p.AddrB(0), port)
	if !cfg.To.IsValid() {
		cfg.To = listen
	}
	return p.startTransfer(p.A, p.B, listen, cfg)
}

// StartTransfer begins a transfer from node a to node b, which listens at
// cfg.To for it.
func (s *Sim) StartTransfer(a, b *Node, cfg TransferConfig) *Transfer {
	return s.startTransfer(a, b, cfg.To, cfg)
}

func (s *Sim) startTransfer(a, b *Node, listen netip.AddrPort, cfg TransferConfig) *Transfer {
	seedA, seedB := s.Rand().Uint64(), s.Rand().Uint64()
	t := &Transfer{
		ProgramA: &Program{Send: cfg.AB, Receive: cfg.BA, ReadRate: cfg.ReadA, StayOpen: cfg.StayOpen, MayAlter: cfg.MayAlter, out: pattern{seedA}, in: pattern{seedB}},
		ProgramB: &Program{Send: cfg.BA, Receive: cfg.AB, ReadRate: cfg.ReadB, StayOpen: cfg.StayOpen, MayAlter: cfg.MayAlter, out: pattern{seedB}, in: pattern{seedA}},
	}
	var err error
	t.Listener, err = b.Listen(listen, 0, cfg.ConnB, func(c *Conn) App {
		if t.ConnB != nil {
			s.violate("%s accepted a second connection", b.Name)
			return nil
		}
		t.ConnB = c
		return t.ProgramB
	})
	if err != nil {
		panic(err)
	}
	t.ConnA, err = a.Dial(netip.AddrPort{}, cfg.To, cfg.ConnA, t.ProgramA)
	if err != nil {
		panic(err)
	}
	return t
}

// Delivered reports whether every byte arrived in both directions.
func (t *Transfer) Delivered() bool { return t.ProgramA.Delivered() && t.ProgramB.Delivered() }

// Ended reports whether both ends of the connection are over.
func (t *Transfer) Ended() bool { return t.ConnA.Closed() && t.ConnB != nil && t.ConnB.Closed() }
