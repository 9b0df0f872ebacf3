package mptcp

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/gomptcp/gomptcp/internal/host"
)

// ListenConfig listens on addresses. Stack must be set.
type ListenConfig struct {
	Stack  *Stack
	Config *Config // of accepted connections; nil = the Stack's

	// Backlog is how many connections may wait for Accept; 0 means 128, at
	// most 4096. Further SYNs are ignored. Half as many may be in their
	// handshake: SYNs beyond that are answered by SYN cookies, which carry
	// MPTCP but no memory.
	Backlog int
}

// Listen listens on an address of the form "host:port" and returns a
// *Listener. See Dialer.DialContext for network. Without a host, or with an
// unspecified address, it listens on all local addresses; port 0 has one
// chosen. MPTCP and plain TCP peers are both served unless Config says
// otherwise.
func (lc *ListenConfig) Listen(ctx context.Context, network, address string) (net.Listener, error) {
	locals, err := resolve(ctx, nil, network, address)
	if err != nil {
		return nil, opError("listen", nil, nil, contextOr(ctx, err))
	}
	local := locals[0]
	if f, _ := familyOf(network); !local.Addr().IsValid() || local.Addr() == netip.IPv6Unspecified() {
		// As in package net, "::" without a family means both.
		local = netip.AddrPortFrom(f.any(), local.Port())
	}
	l, err := lc.listen(local)
	if err != nil {
		return nil, opError("listen", nil, net.TCPAddrFromAddrPort(local), err)
	}
	return l, nil
}

// any returns what stands for all addresses of a family.
func (f family) any() netip.Addr {
	switch f {
	case "4":
		return netip.IPv4Unspecified()
	case "6":
		return netip.IPv6Unspecified()
	}
	return netip.Addr{}
}

func (lc *ListenConfig) listen(local netip.AddrPort) (*Listener, error) {
	s := lc.Stack
	if s == nil {
		return nil, ErrNoStack
	}
	cfg := lc.Config
	if cfg == nil {
		cfg = &s.config
	}
	hc, err := cfg.forHost()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, net.ErrClosed
	}
	core, err := s.host.Listen(local, lc.Backlog, hc)
	if err != nil {
		return nil, hostError(err)
	}
	l := &Listener{
		stack: s, config: *cfg.Clone(), core: core,
		addr:  listenAddr(core.Addr()),
		ready: make(chan struct{}, 1), done: make(chan struct{}),
	}
	core.User = l
	s.listeners[l] = struct{}{}
	return l, nil
}

// listenAddr returns the address that a listener shows. One on both families
// shows "::", as in package net.
func listenAddr(ap netip.AddrPort) *net.TCPAddr {
	if !ap.Addr().IsValid() {
		ap = netip.AddrPortFrom(netip.IPv6Unspecified(), ap.Port())
	}
	return net.TCPAddrFromAddrPort(ap)
}

// Listener gives out the connections that peers open. It implements
// net.Listener.
type Listener struct {
	stack    *Stack
	config   Config
	core     *host.Listener // guarded by stack.mu
	addr     *net.TCPAddr
	ready    chan struct{} // holds a token while connections may be waiting
	done     chan struct{} // closed by Close
	once     sync.Once
	deadline deadline
}

// Accept waits for the next connection and returns it, a *Conn.
func (l *Listener) Accept() (net.Conn, error) {
	c, err := l.AcceptMPTCP()
	if err != nil {
		return nil, err // a nil *Conn must not become a net.Conn
	}
	return c, nil
}

// AcceptMPTCP waits for the next connection and returns it.
func (l *Listener) AcceptMPTCP() (*Conn, error) {
	for {
		switch {
		case isClosed(l.done):
			return nil, l.opError("accept", net.ErrClosed)
		case l.deadline.expired():
			return nil, l.opError("accept", errExpired)
		}
		if c := l.next(); c != nil {
			return c, nil
		}
		// At once, unlike a Read that expects much: the processor is of more use
		// to those who dial.
		select {
		case <-l.ready:
		case <-l.done:
		case <-l.deadline.wait():
		}
	}
}

// next takes the connection that has waited longest, nil if there is none.
func (l *Listener) next() *Conn {
	l.stack.mu.Lock()
	defer l.stack.mu.Unlock()
	hc, ok := l.core.Accept()
	if !ok {
		return nil
	}
	if l.core.Pending() > 0 {
		l.wake()
	}
	return hc.User.(*Conn)
}

// wake lets one call of Accept look for connections.
func (l *Listener) wake() {
	select {
	case l.ready <- struct{}{}:
	default:
	}
}

// Close stops listening and resets connections that were not accepted yet.
// Those that were live on. Waiting calls of Accept fail with net.ErrClosed.
func (l *Listener) Close() error {
	err := l.opError("close", net.ErrClosed)
	l.once.Do(func() {
		err = nil
		close(l.done)
		l.deadline.stop()
		s := l.stack
		s.mu.Lock()
		delete(s.listeners, l)
		left := s.host.CloseListener(l.core)
		s.mu.Unlock()
		for _, hc := range left {
			hc.User.(*Conn).abort()
		}
	})
	return err
}

// Addr returns the address listened on, a *net.TCPAddr.
func (l *Listener) Addr() net.Addr { return l.addr }

// SetDeadline sets the deadline of Accept. A zero t takes it away.
func (l *Listener) SetDeadline(t time.Time) error {
	if isClosed(l.done) {
		return l.opError("set", net.ErrClosed)
	}
	l.deadline.set(t, nil)
	return nil
}

func (l *Listener) opError(op string, err error) error {
	return opError(op, nil, l.addr, err)
}
