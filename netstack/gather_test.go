package netstack

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/mptcp"
)

// labelled returns an inbound packet that can be told from others.
func labelled(sender, n int) *inbound {
	in := inboundPool.Get().(*inbound)
	in.packet = mptcp.Packet{ECN: uint8(sender), SegSize: n}
	return in
}

func TestGathererDeliversABatchAtOnce(t *testing.T) {
	var sizes []int
	g := gatherer{deliver: func(b []mptcp.Packet) { sizes = append(sizes, len(b)) }}
	g.add(labelled(0, 0))
	require.Equal(t, []int{1}, sizes, "nobody sends a batch")
	g.hold()
	for i := range 40 {
		g.add(labelled(0, i))
	}
	require.Equal(t, []int{1, 32}, sizes)
	g.release()
	require.Equal(t, []int{1, 32, 8}, sizes)
	g.hold()
	g.hold()
	g.add(labelled(0, 0))
	g.release()
	require.Equal(t, []int{1, 32, 8, 1}, sizes, "one sender does not wait for the other")
	g.release()
	require.Len(t, sizes, 4)
}

// What is sent from within a delivery arrives, after it.
func TestGathererWithinADelivery(t *testing.T) {
	var order []int
	var g gatherer
	g.deliver = func(b []mptcp.Packet) {
		for _, p := range b {
			order = append(order, p.SegSize)
			if p.SegSize < 3 {
				g.hold()
				g.add(labelled(0, p.SegSize+1))
				g.release()
			}
		}
	}
	g.add(labelled(0, 0))
	require.Equal(t, []int{0, 1, 2, 3}, order)
}

// Senders at the same time: every packet arrives, those of a sender in order.
func TestGathererWithManySenders(t *testing.T) {
	const senders, batches, size = 4, 500, 5
	var mu sync.Mutex
	next := make([]int, senders)
	wrong := 0
	g := gatherer{deliver: func(b []mptcp.Packet) {
		mu.Lock()
		defer mu.Unlock()
		for _, p := range b {
			if p.SegSize != next[p.ECN] {
				wrong++
			}
			next[p.ECN]++
		}
	}}
	var all sync.WaitGroup
	for s := range senders {
		all.Go(func() {
			for i := range batches {
				if i%10 == 0 {
					for k := range size {
						g.add(labelled(s, i*size+k))
					}
					continue
				}
				g.hold()
				for k := range size {
					g.add(labelled(s, i*size+k))
				}
				g.release()
			}
		})
	}
	all.Wait()
	mu.Lock()
	defer mu.Unlock()
	require.Zero(t, wrong)
	require.Equal(t, []int{batches * size, batches * size, batches * size, batches * size}, next)
}

// Connections that share a perfect pipe deliver each other's packets: all of
// them finish.
func TestManyConnectionsShareAPerfectPipe(t *testing.T) {
	p := newPair(t, nil, nil, PipeConfig{}, PipeConfig{})
	defer p.close()
	l, err := p.server.Listen("mptcp", ":80")
	require.NoError(t, err)
	defer l.Close()
	const conns = 8
	failed := make(chan error, conns)
	for range conns {
		c, err := p.client.Dial("mptcp", "10.0.0.2:80")
		require.NoError(t, err)
		s, err := l.Accept()
		require.NoError(t, err)
		go func() {
			failed <- errors.Join(carry(c, s), carry(s, c), carry(c, s), c.Close(), s.Close())
		}()
	}
	for range conns {
		require.NoError(t, <-failed)
	}
}

// carry sends bytes from one end to the other and compares them.
func carry(from, to net.Conn) error {
	data := pattern(200_000)
	sent := make(chan error, 1)
	go func() {
		_, err := from.Write(data)
		sent <- err
	}()
	got := make([]byte, len(data))
	_, err := io.ReadFull(to, got)
	if err == nil && !bytes.Equal(data, got) {
		err = errors.New("altered on the way")
	}
	return errors.Join(err, <-sent)
}
