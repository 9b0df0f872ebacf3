package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gomptcp/gomptcp/mptcp"
)

// A flow of datagrams, UDP, has an MPTCP connection of its own, so that a loss on
// one flow holds up no other. On it each datagram follows its length in 2 bytes.
const (
	// datagramIdle is how long a flow of datagrams may be silent: the end of one
	// is not told otherwise.
	datagramIdle = time.Minute
	// backlogBytes is how much waits for its turn: what comes on top of it takes
	// the place of the oldest, which would be stale by then.
	backlogBytes = 64 << 10
	// datagramCost is what a datagram counts for besides its bytes, of which it
	// may have none.
	datagramCost = 64
	// unsentBytes is how much of that the connection is given before it is sent.
	unsentBytes = 16 << 10
	// unsentLook is how often it is asked then.
	unsentLook = 2 * time.Millisecond
)

// backlog holds datagrams that wait to be sent, the newest of them.
type backlog struct {
	mu      sync.Mutex
	queue   [][]byte
	bytes   int
	dropped int
	closed  bool
	some    chan struct{} // one value if there may be something to take
}

func newBacklog() *backlog { return &backlog{some: make(chan struct{}, 1)} }

// put adds a datagram, at the expense of the oldest if need be.
func (b *backlog) put(d []byte) {
	b.mu.Lock()
	b.queue = append(b.queue, d)
	for b.bytes += datagramCost + len(d); b.bytes > backlogBytes && len(b.queue) > 1; b.dropped++ {
		b.bytes -= datagramCost + len(b.queue[0])
		b.queue = b.queue[1:]
	}
	b.mu.Unlock()
	b.signal()
}

func (b *backlog) signal() {
	select {
	case b.some <- struct{}{}:
	default:
	}
}

// wait waits until there is a datagram, and reports false once there will be no
// more.
func (b *backlog) wait() bool {
	for {
		b.mu.Lock()
		any, closed := len(b.queue) > 0, b.closed
		b.mu.Unlock()
		if any || closed {
			return any && !closed
		}
		<-b.some
	}
}

// take removes the oldest datagram of those that are left.
func (b *backlog) take() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		return nil
	}
	d := b.queue[0]
	b.queue = b.queue[1:]
	b.bytes -= datagramCost + len(d)
	return d
}

func (b *backlog) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.signal()
}

// carried is a stream that carries datagrams.
type carried interface {
	half
	Info() mptcp.Info
}

// relayDatagrams passes datagrams on between a connected socket and a stream
// until either ends, both are silent for too long, or ctx ends.
func relayDatagrams(ctx context.Context, stream carried, packets net.Conn) error {
	last := &atomic.Int64{}
	last.Store(time.Now().UnixNano())
	stop := context.AfterFunc(ctx, func() {
		reset(stream)
		packets.Close()
	})
	defer stop()
	out := newBacklog()
	var both sync.WaitGroup
	both.Go(func() {
		gather(packets, out, last)
		out.close()
	})
	both.Go(func() {
		sendFrames(stream, out)
		stream.Close() // ends the reading below, too
		packets.Close()
	})
	err := readFrames(stream, packets, last)
	out.close()
	packets.Close()
	both.Wait()
	return err
}

// gather takes datagrams from a socket until it ends or everything is silent.
func gather(packets net.Conn, to *backlog, last *atomic.Int64) {
	buf := make([]byte, 1<<16)
	for {
		packets.SetReadDeadline(time.Unix(0, last.Load()).Add(datagramIdle))
		n, err := packets.Read(buf)
		switch {
		case err == nil:
			last.Store(time.Now().UnixNano())
			to.put(bytes.Clone(buf[:n]))
		case !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(time.Unix(0, last.Load())) >= datagramIdle:
			return
		}
	}
}

// sendFrames sends what waits, no faster than it leaves.
func sendFrames(stream carried, from *backlog) {
	for from.wait() {
		if stream.Info().Unsent > unsentBytes {
			time.Sleep(unsentLook)
			continue
		}
		if d := from.take(); d != nil {
			frame := binary.BigEndian.AppendUint16(make([]byte, 0, 2+len(d)), uint16(len(d)))
			if _, err := stream.Write(append(frame, d...)); err != nil {
				return
			}
		}
	}
}

// readFrames passes datagrams of a stream on until it ends. What the socket does
// not take is lost, as datagrams are.
func readFrames(stream io.Reader, packets net.Conn, last *atomic.Int64) error {
	var length [2]byte
	buf := make([]byte, 1<<16)
	for {
		if _, err := io.ReadFull(stream, length[:]); err != nil {
			return ended(err)
		}
		d := buf[:binary.BigEndian.Uint16(length[:])]
		if _, err := io.ReadFull(stream, d); err != nil {
			return ended(err)
		}
		last.Store(time.Now().UnixNano())
		if _, err := packets.Write(d); errors.Is(err, net.ErrClosed) {
			return nil
		}
	}
}

// ended is nil for the ends that are no failure.
func ended(err error) error {
	if err == io.EOF || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
