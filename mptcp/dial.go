package mptcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/gomptcp/gomptcp/internal/host"
)

// Dialer connects to addresses. Stack must be set.
type Dialer struct {
	Stack  *Stack
	Config *Config // nil = the Stack's

	// Timeout is how long a dial may take, all addresses of a name together;
	// 0 = no limit but that of the handshake, about two minutes. Plain TCP is
	// tried, where it may be, when SYNs with MPTCP stay unanswered: with at least
	// 14 s after 7 s, as in Linux, with less time before half of it is over, but
	// not within the first second.
	Timeout time.Duration
	// Deadline is when a dial fails at the latest; zero = never.
	Deadline time.Time

	// LocalAddr is the address to connect from, a *net.TCPAddr; nil, or parts
	// of it that are zero, are chosen.
	LocalAddr net.Addr

	// FlowSize is how many bytes the application will write to the connection,
	// for schedulers and path managers that go by it; 0 = unknown. See
	// Conn.SetFlowSize.
	FlowSize int64

	// Resolver looks names up; nil means net.DefaultResolver. It is not asked
	// about IP addresses.
	Resolver *net.Resolver
}

// Dial connects to an address. See DialContext.
func (d *Dialer) Dial(network, address string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, address)
}

// DialContext connects to an address of the form "host:port", where host may
// be a name, whose addresses are tried in turn. Network is "mptcp", "mptcp4"
// or "mptcp6"; "tcp", "tcp4" and "tcp6" mean the same, so that DialContext fits
// where a net.Dialer's does. Whether MPTCP is spoken is up to Config.
//
// It returns a *Conn as soon as the first subflow is established; further ones
// are opened in the background. When ctx ends before, the attempt is given up;
// after that ctx has no effect. With Config.FastOpen it may return at once,
// before anything is sent to the first of the addresses.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := d.dial(ctx, network, address)
	if err != nil {
		return nil, err // a nil *Conn must not become a net.Conn
	}
	return c, nil
}

func (d *Dialer) dial(ctx context.Context, network, address string) (*Conn, error) {
	ctx, cancel := d.limit(ctx)
	defer cancel()
	source := d.LocalAddr
	remotes, err := resolve(ctx, d.Resolver, network, address)
	if err != nil {
		return nil, opError("dial", source, nil, contextOr(ctx, err))
	}
	var first error
	for i, remote := range remotes {
		c, err := d.try(ctx, remote, len(remotes)-i)
		if err == nil {
			return c, nil
		}
		if first == nil {
			first = err
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, first
}

// DialMPTCP connects to one address. See DialContext.
func (d *Dialer) DialMPTCP(ctx context.Context, remote netip.AddrPort) (*Conn, error) {
	ctx, cancel := d.limit(ctx)
	defer cancel()
	return d.try(ctx, remote, 1)
}

// limit puts the Dialer's own limits on ctx.
func (d *Dialer) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	at := d.Deadline
	if d.Timeout > 0 {
		if t := time.Now().Add(d.Timeout); at.IsZero() || t.Before(at) {
			at = t
		}
	}
	if at.IsZero() {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, at)
}

// leastTry is what an address gets of the time for several at least.
const leastTry = 2 * time.Second

// try connects to one address, of several that have to share the time left.
func (d *Dialer) try(ctx context.Context, remote netip.AddrPort, several int) (*Conn, error) {
	if at, ok := ctx.Deadline(); ok && several > 1 {
		left := time.Until(at)
		part, cancel := context.WithTimeout(ctx, min(left, max(left/time.Duration(several), leastTry)))
		defer cancel()
		ctx = part
	}
	remote = netip.AddrPortFrom(remote.Addr().Unmap(), remote.Port())
	c, err := d.connect(ctx, remote)
	if err != nil {
		return nil, opError("dial", d.LocalAddr, net.TCPAddrFromAddrPort(remote), err)
	}
	return c, nil
}

func (d *Dialer) connect(ctx context.Context, remote netip.AddrPort) (*Conn, error) {
	s := d.Stack
	if s == nil {
		return nil, ErrNoStack
	}
	if !remote.Addr().IsValid() {
		return nil, &net.AddrError{Err: "missing host", Addr: remote.String()}
	}
	args := host.DialArgs{Remote: remote}
	cfg, err := &s.config, error(nil)
	if d.Config == nil && d.FlowSize <= 0 {
		args.Profile, err = s.profile()
	} else {
		cfg = cmp.Or(d.Config, cfg)
		args.Profile, err = s.profileOf(cfg, max(d.FlowSize, 0))
	}
	if err != nil {
		return nil, err
	}
	if args.Local, err = localAddrPort(d.LocalAddr); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if at, ok := ctx.Deadline(); ok {
		args.Within = time.Until(at)
	}
	c, err := s.open(cfg, args)
	if err != nil {
		return nil, err
	}
	return c, c.awaitConnected(ctx)
}

// open begins a connection.
func (s *Stack) open(cfg *Config, args host.DialArgs) (*Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, net.ErrClosed
	}
	if a := args.Local.Addr(); (!a.IsValid() || a.IsUnspecified()) && cfg.PathManager == nil {
		// A path manager of the user's may have its own idea.
		if src, ok := s.network.Source(args.Remote.Addr()); ok {
			args.Local = netip.AddrPortFrom(src, args.Local.Port())
		}
	}
	hc, err := s.host.Dial(s.now(), args)
	if err != nil {
		return nil, hostError(err)
	}
	return s.newConn(hc, cfg), nil
}

// awaitConnected sends the SYN and waits for the end of the handshake, or
// gives it up when ctx ends. A SYN that waits for data it lets wait.
func (c *Conn) awaitConnected(ctx context.Context) error {
	c.mu.Lock()
	held := c.core.Held()
	c.unlock()
	if held {
		return nil
	}
	err := c.await(ctx, func() (bool, error) {
		if c.core.Closed() {
			return true, c.endError()
		}
		return c.core.Connected(), nil
	})
	if err != nil {
		c.abort()
	}
	return err
}

// await waits until ready, which is called under c.mu, says that it is enough
// or what is wrong; or ctx ends, or the connection is closed.
func (c *Conn) await(ctx context.Context, ready func() (bool, error)) error {
	for {
		over := ctx.Err() // what happened before ctx ended counts
		c.mu.Lock()
		ok, err := ready()
		if c.changed == nil && !ok && err == nil {
			c.changed = make(chan struct{})
		}
		changed := c.changed
		c.leave()
		switch {
		case ok || err != nil:
			return err
		case over != nil:
			return over
		}
		select {
		case <-changed:
		case <-c.done.wait():
			return net.ErrClosed
		case <-ctx.Done():
		}
	}
}

// endError returns why the connection is over. c.mu must be held.
func (c *Conn) endError() error {
	if c.err == nil {
		return net.ErrClosed
	}
	return c.err
}

// hostError returns the error that users know for one of the host's.
func hostError(err error) error {
	switch {
	case errors.Is(err, host.ErrNoRoute):
		return syscall.ENETUNREACH
	case errors.Is(err, host.ErrNoPort):
		return syscall.EADDRNOTAVAIL
	case errors.Is(err, host.ErrAddrInUse):
		return syscall.EADDRINUSE
	case errors.Is(err, host.ErrNoKey):
		return ErrFallback
	case errors.Is(err, host.ErrNotOpened):
		return ErrLimit
	}
	return err
}

// contextOr returns why ctx ended, or err if it has not.
func contextOr(ctx context.Context, err error) error {
	if ctxErr := ctx.Err(); ctxErr != nil {
		return ctxErr
	}
	return err
}

// localAddrPort returns the address and port of a; nil means zeros.
func localAddrPort(a net.Addr) (netip.AddrPort, error) {
	switch a := a.(type) {
	case nil:
		return netip.AddrPort{}, nil
	case *net.TCPAddr:
		if a == nil {
			return netip.AddrPort{}, nil
		}
		ap := a.AddrPort()
		return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port()), nil
	}
	return netip.AddrPort{}, fmt.Errorf("local address %v of type %T is no *net.TCPAddr", a, a)
}
