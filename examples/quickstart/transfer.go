package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	"github.com/gomptcp/gomptcp/mptcp"
)

// port is where the server listens.
const port = 8000

// source opens what is sent and says how long it is.
func (o *options) source() (io.ReadCloser, int64, error) {
	if o.file == "" {
		return io.NopCloser(io.LimitReader(rand.NewChaCha8([32]byte{}), o.bytes)), o.bytes, nil
	}
	f, err := os.Open(o.file)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// receipt is what the server saw of the transfer.
type receipt struct {
	bytes int64
	sum   [sha256.Size]byte
	last  time.Time // when the last byte was read
	err   error
}

// serve takes one connection, reads it to its end and closes it.
func serve(l net.Listener) receipt {
	c, err := l.Accept()
	if err != nil {
		return receipt{err: err}
	}
	defer c.Close()
	var r receipt
	h := sha256.New()
	buf := make([]byte, 64<<10)
	for {
		n, err := c.Read(buf)
		if n > 0 {
			r.last = time.Now()
			r.bytes += int64(n)
			h.Write(buf[:n])
		}
		if err != nil {
			if r.bytes == 0 {
				r.last = time.Now()
			}
			h.Sum(r.sum[:0])
			if !errors.Is(err, io.EOF) {
				r.err = err
			}
			return r
		}
	}
}

// transfer is one run: the client sends, the server checks, and one path may
// be away for a while.
type transfer struct {
	options *options
	net     *network
	conn    *mptcp.Conn
	size    int64
	mend    *time.Timer // ends the outage; nil before it
	down    atomic.Bool // the fastest path is away
}

// outcome is how a transfer ended.
type outcome struct {
	wanted   [sha256.Size]byte // of what was sent
	got      receipt
	seconds  float64 // from the first write to the last byte read
	subflows []mptcp.SubflowInfo
}

// run sends the source to the server. watch, unless nil, sees the transfer
// while it goes on and returns once stop is closed.
func (o *options) run(ctx context.Context, watch func(t *transfer, stop <-chan struct{})) (*outcome, error) {
	src, size, err := o.source()
	if err != nil {
		return nil, err
	}
	defer src.Close()
	n, err := newNetwork(o)
	if err != nil {
		return nil, err
	}
	out, err := n.send(ctx, o, src, size, watch)
	return out, errors.Join(err, n.close())
}

func (n *network) send(ctx context.Context, o *options, src io.Reader, size int64, watch func(*transfer, <-chan struct{})) (*outcome, error) {
	l, err := n.server.Listen("mptcp", netip.AddrPortFrom(netip.IPv4Unspecified(), port).String())
	if err != nil {
		return nil, err
	}
	defer l.Close()
	served := make(chan receipt, 1)
	go func() { served <- serve(l) }()

	dialer := mptcp.Dialer{Stack: n.client.Stack}
	conn, err := dialer.DialMPTCP(ctx, netip.AddrPortFrom(address(0, 2), port))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	t := &transfer{options: o, net: n, conn: conn, size: size}
	defer t.endOutage()
	stop, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		if watch != nil {
			watch(t, stop)
		}
	}()
	start := time.Now()
	sum, err := t.write(src)
	if err == nil {
		// The server closes once it has read everything.
		_, err = conn.Read(make([]byte, 1))
		if errors.Is(err, io.EOF) {
			err = nil
		}
	}
	close(stop)
	<-watched
	if err != nil {
		return nil, err
	}
	out := &outcome{wanted: sum, got: <-served, subflows: conn.Subflows()}
	out.seconds = out.got.last.Sub(start).Seconds()
	return out, out.got.err
}

// write sends the source and ends the stream. The outage begins when a third
// of it is written.
func (t *transfer) write(src io.Reader) (sum [sha256.Size]byte, err error) {
	h := sha256.New()
	buf := make([]byte, 64<<10)
	for written := int64(0); ; {
		n, err := src.Read(buf)
		h.Write(buf[:n])
		if _, err := t.conn.Write(buf[:n]); err != nil {
			return sum, err
		}
		written += int64(n)
		if written >= t.size/3 {
			t.beginOutage()
		}
		if errors.Is(err, io.EOF) {
			h.Sum(sum[:0])
			return sum, t.conn.CloseWrite()
		}
		if err != nil {
			return sum, err
		}
	}
}

// beginOutage takes the fastest path down, once: its packets vanish and nobody
// is told. A timer brings it back.
func (t *transfer) beginOutage() {
	if t.options.outage == 0 || t.mend != nil {
		return
	}
	pipe := t.net.pipes[t.options.fastest()]
	t.down.Store(true)
	pipe.SetUp(false)
	t.mend = time.AfterFunc(t.options.outage, func() {
		pipe.SetUp(true)
		t.down.Store(false)
	})
}

// endOutage stops the timer of an outage that outlived the transfer.
func (t *transfer) endOutage() {
	if t.mend != nil {
		t.mend.Stop()
	}
}
