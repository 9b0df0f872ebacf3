package mptcp

import (
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/gomptcp/gomptcp/internal/host"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/mpconn"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/stream"
)

// Stack is one host: the connections and listeners over one Network. All
// methods may be called concurrently.
type Stack struct {
	network Network                       // immutable
	config  Config                        // immutable
	origin  time.Time                     // immutable: when the Stack's clock was 0
	profile func() (*host.Profile, error) // immutable: of config; made once

	alarms alarms

	// Lock order: Conn.mu, then Stack.mu. Whoever looks a connection up
	// releases mu before touching it.
	mu        sync.Mutex
	host      *host.Host              // guarded by mu
	listeners map[*Listener]struct{}  // guarded by mu
	timer     *time.Timer             // guarded by mu; nil until it is first needed
	armed     mono.Time               // guarded by mu: when timer fires; 0 = not
	closed    bool                    // guarded by mu
	drops     [reason.NumDrops]uint64 // guarded by mu: those that host did not see
}

// NewStack returns a Stack that sends through n; whoever calls it feeds
// Deliver. cfg is what connections are made from when their Dialer or
// ListenConfig says nothing else; nil means the zero Config. A cfg that is not
// valid is reported by every Dial and Listen.
func NewStack(n Network, cfg *Config) *Stack {
	if cfg == nil {
		cfg = &Config{}
	}
	s := &Stack{
		network: n, config: *cfg.Clone(), origin: time.Now(),
		listeners: make(map[*Listener]struct{}),
	}
	alloc := n.Allocator()
	if alloc == nil {
		alloc = stream.Heap{}
	}
	hc := host.Config{
		Rand: random, Alloc: alloc,
		Path: s.path, Routable: s.routable, Locals: n.Locals,
		Observe: s.observe,
		Budget:  newBudget(s.config.Memory),
	}
	crand.Read(hc.Secret[:])
	s.host = host.New(hc)
	s.profile = sync.OnceValues(func() (*host.Profile, error) { return s.profileOf(&s.config, 0) })
	return s
}

// profileOf returns what connections with a configuration are made from.
func (s *Stack) profileOf(cfg *Config, flowSize int64) (*host.Profile, error) {
	hc, err := cfg.forHost()
	if err != nil {
		return nil, err
	}
	hc.FlowSize = flowSize
	return s.host.Profile(hc), nil
}

// random returns bits that nobody can guess.
func random() uint64 {
	var b [8]byte
	crand.Read(b[:])
	return binary.LittleEndian.Uint64(b[:])
}

// now returns the time on the Stack's clock, which is never 0.
func (s *Stack) now() mono.Time { return mono.Time(time.Since(s.origin)) + 1 }

// leastMTU is used for a path that the network no longer knows: what IPv6
// guarantees, less its header (RFC 8200, Section 5).
const leastMTU = 1280 - 40

func (s *Stack) path(local, remote netip.Addr) (mtu, segmentMax int) {
	p, ok := s.network.Path(local, remote)
	if !ok {
		return leastMTU, 0
	}
	return p.MTU, p.SegmentMax
}

func (s *Stack) routable(local, remote netip.Addr) bool {
	_, ok := s.network.Path(local, remote)
	return ok
}

// observe passes an event on to its connection. The host calls it from Step,
// under the connection's lock and then the Stack's.
func (s *Stack) observe(_ mono.Time, hc *host.Conn, e mpconn.Event) {
	hc.User.(*Conn).observe(e)
}

// arm sets the timer for the host's deadline. s.mu must be held.
func (s *Stack) arm(now mono.Time) {
	at := s.host.Deadline()
	if s.closed || !at.Set() || s.armed.Set() && s.armed <= at {
		return
	}
	s.armed = at
	left := max(at.Sub(now), minSleep)
	if s.timer == nil {
		s.timer = time.AfterFunc(left, s.alarm)
	} else {
		s.timer.Reset(left)
	}
}

func (s *Stack) alarm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	now := s.now()
	s.armed = 0
	s.host.HandleTimeout(now)
	s.arm(now)
}

// AddrUp says that local addresses became usable. The Network must list them
// by now. Like AddrDown, it must not be called under a lock that the Network's
// methods take.
func (s *Stack) AddrUp(addrs ...netip.Addr) { s.tellAll(addrs, s.host.AddrUp) }

// AddrDown says that local addresses are gone, and with them the subflows that
// used them. The Network must no longer list them. Addresses that go together
// must be told together, so that the peer hears of all by a subflow that is
// left.
func (s *Stack) AddrDown(addrs ...netip.Addr) { s.tellAll(addrs, s.host.AddrDown) }

// tellAll tells every connection about local addresses.
func (s *Stack) tellAll(addrs []netip.Addr, tell func(mono.Time, *host.Conn, netip.Addr)) {
	for _, c := range s.conns() {
		c.mu.Lock()
		s.mu.Lock()
		if !s.closed {
			for _, addr := range addrs {
				tell(s.now(), c.core, addr)
			}
		}
		s.mu.Unlock()
		c.unlock()
	}
}

// conns returns all connections.
func (s *Stack) conns() []*Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*Conn
	s.host.Conns(func(hc *host.Conn) { all = append(all, hc.User.(*Conn)) })
	return all
}

// Close aborts all connections, closes all listeners and stops all timers.
// Calls that wait end with net.ErrClosed. The Network is no longer used after
// Close returns.
func (s *Stack) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	if s.timer != nil {
		s.timer.Stop()
	}
	var listeners []*Listener
	for l := range s.listeners {
		listeners = append(listeners, l)
	}
	s.mu.Unlock()

	for _, l := range listeners {
		l.Close()
	}
	for _, c := range s.conns() {
		c.kill()
	}
	return nil
}

// Counters returns what the Stack did since it was made.
func (s *Stack) Counters() Counters {
	s.mu.Lock()
	defer s.mu.Unlock()
	return countersOf(s.host.Counters(), &s.drops)
}

// Dial connects to an address with the Stack's configuration. See Dialer.Dial.
func (s *Stack) Dial(network, address string) (net.Conn, error) {
	return s.DialContext(context.Background(), network, address)
}

// DialContext connects to an address with the Stack's configuration. See
// Dialer.DialContext.
func (s *Stack) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	d := Dialer{Stack: s}
	return d.DialContext(ctx, network, address)
}

// Listen listens on an address with the Stack's configuration. See
// ListenConfig.Listen.
func (s *Stack) Listen(network, address string) (net.Listener, error) {
	lc := ListenConfig{Stack: s}
	return lc.Listen(context.Background(), network, address)
}
