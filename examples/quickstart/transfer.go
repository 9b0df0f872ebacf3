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
	"sync"
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

// serve takes one connection, reads it to its end and closes it. arrived is
// told how much was read so far.
func serve(l net.Listener, arrived func(total int64)) receipt {
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
			arrived(r.bytes)
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
	mend    *time.Timer // ends the outage; nil before it; used by the server until it is done
	down    atomic.Bool // a path is away

	mu  sync.Mutex
	err error // guarded by mu: what went wrong with the paths
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
	t := &transfer{options: o, net: n, size: size}
	served := make(chan receipt, 1)
	go func() { served <- serve(l, t.arrived) }()

	dialer := mptcp.Dialer{Stack: n.client.Stack}
	conn, err := dialer.DialMPTCP(ctx, netip.AddrPortFrom(address(0, serverHost), port))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	t.conn = conn
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
		conn.Close()
		l.Close()
	}
	out := &outcome{wanted: sum, got: <-served, subflows: conn.Subflows()}
	out.seconds = out.got.last.Sub(start).Seconds()
	return out, errors.Join(err, out.got.err, t.endOutage())
}

// write sends the source and ends the stream.
func (t *transfer) write(src io.Reader) (sum [sha256.Size]byte, err error) {
	h := sha256.New()
	buf := make([]byte, 64<<10)
	for {
		n, err := src.Read(buf)
		h.Write(buf[:n])
		if _, err := t.conn.Write(buf[:n]); err != nil {
			return sum, err
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

// arrived begins the outage when the server has a third. It runs in the
// server's goroutine.
func (t *transfer) arrived(total int64) {
	if total < t.size/3 || t.options.outage == 0 || t.mend != nil {
		return
	}
	end := t.pathBack
	if t.options.handover {
		// The client notices, as one that leaves a network does; the server
		// is not told.
		t.note(t.net.client.RemoveLink(name(t.options.leaving())))
		end = t.otherPath
	} else {
		t.net.pipes[t.options.leaving()].SetUp(false) // packets vanish, nobody is told
	}
	t.down.Store(true)
	t.mend = time.AfterFunc(t.options.outage, end)
}

// pathBack mends the path that was down.
func (t *transfer) pathBack() {
	t.net.pipes[t.options.leaving()].SetUp(true)
	t.down.Store(false)
}

// otherPath gives the client the path that it had not had.
func (t *transfer) otherPath() { t.note(t.net.attach(1)) }

// note keeps what went wrong with the paths.
func (t *transfer) note(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = errors.Join(t.err, err)
}

// endOutage stops the timer of an outage that outlived the transfer and
// returns what was noted. The server must be done.
func (t *transfer) endOutage() error {
	if t.mend != nil {
		t.mend.Stop()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}
