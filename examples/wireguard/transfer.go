package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"time"

	"github.com/gomptcp/gomptcp/mptcp"
)

// port is where the server listens.
const port = 8000

// receipt is what the server saw of the transfer.
type receipt struct {
	bytes int64
	sum   [sha256.Size]byte
	last  time.Time // when the last byte was read
	err   error
}

// run sends the data through the tunnels.
func (o *options) run(ctx context.Context) (*report, error) {
	n, err := newNetwork(ctx)
	if err != nil {
		return nil, err
	}
	defer n.close()
	l, err := n.server.Listen("mptcp", netip.AddrPortFrom(netip.IPv4Unspecified(), port).String())
	if err != nil {
		return nil, err
	}
	defer l.Close()
	served := make(chan receipt, 1)
	go func() {
		r := o.serve(n, l)
		served <- r
		if r.err != nil {
			n.client.Close() // which ends what the client does
		}
	}()

	dialer := mptcp.Dialer{Stack: n.client.Stack}
	c, err := dialer.DialMPTCP(ctx, netip.AddrPortFrom(address(faster, serverHost), port))
	if err != nil {
		return nil, err
	}
	defer c.Close()
	start := time.Now()
	sum, err := o.send(ctx, c)
	if err != nil {
		select {
		case got := <-served:
			err = errors.Join(err, got.err)
		default:
		}
		return nil, err
	}
	got := <-served
	if got.err != nil {
		return nil, got.err
	}
	r := &report{SHA256OK: got.sum == sum, Bytes: got.bytes, Seconds: got.last.Sub(start).Seconds()}
	return r, r.fill(n, c.Subflows())
}

// first is how much is sent before all tunnels are in use: other subflows can
// join once the peer has acknowledged some data (RFC 8684, Section 3.1).
const first = 1000

// joined waits until a connection uses all tunnels. A program need not: what it
// writes goes over those that there are.
func joined(ctx context.Context, c *mptcp.Conn) error {
	return poll(ctx, "the connection does not use all tunnels", func() (bool, error) {
		return c.Info().Subflows == len(shapes), nil
	})
}

// poll asks until the answer is yes.
func poll(ctx context.Context, otherwise string, ask func() (bool, error)) error {
	for {
		yes, err := ask()
		if yes || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", otherwise, ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// send writes the data, ends the stream and waits for the server to have read
// all of it.
func (o *options) send(ctx context.Context, c *mptcp.Conn) (sum [sha256.Size]byte, err error) {
	h := sha256.New()
	src := io.TeeReader(io.LimitReader(rand.NewChaCha8([32]byte{}), o.bytes), h)
	if _, err := io.Copy(c, io.LimitReader(src, first)); err != nil {
		return sum, err
	}
	if err := joined(ctx, c); err != nil {
		return sum, err
	}
	if _, err := io.Copy(c, src); err != nil {
		return sum, err
	}
	h.Sum(sum[:0])
	if err := c.CloseWrite(); err != nil {
		return sum, err
	}
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		return sum, err
	}
	return sum, nil
}

// serve takes one connection and reads it to its end. At a third it takes a
// tunnel down.
func (o *options) serve(n *network, l net.Listener) receipt {
	c, err := l.Accept()
	if err != nil {
		return receipt{err: err}
	}
	defer c.Close()
	var r receipt
	h := sha256.New()
	whole := o.down
	for buf := make([]byte, 64<<10); ; {
		size, err := c.Read(buf)
		r.bytes, r.last = r.bytes+int64(size), time.Now()
		h.Write(buf[:size])
		if whole && r.bytes >= o.bytes/3 {
			whole = false
			// What the client sends there from now on meets a closed socket.
			if err := n.tunnels[faster].server.Down(); err != nil {
				return receipt{err: err}
			}
		}
		if err != nil {
			h.Sum(r.sum[:0])
			if !errors.Is(err, io.EOF) {
				r.err = err
			}
			return r
		}
	}
}
