package mptcp_test

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"runtime/pprof"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/internal/simnet"
	"github.com/gomptcp/gomptcp/mptcp"
)

// TestMain fails if goroutines that run code of this module are left over.
func TestMain(m *testing.M) {
	code := m.Run()
	if left := leaked(2 * time.Second); left != "" && code == 0 {
		fmt.Fprintf(os.Stderr, "goroutines left over:\n%s", left)
		code = 1
	}
	os.Exit(code)
}

// leaked waits for the goroutines of this module to end, and returns the
// stacks of those that have not after a time.
func leaked(patience time.Duration) string {
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		var b bytes.Buffer
		pprof.Lookup("goroutine").WriteTo(&b, 1)
		var left []string
		for stack := range strings.SplitSeq(b.String(), "\n\n") {
			if strings.Contains(stack, "gomptcp/") && !strings.Contains(stack, "mptcp_test.TestMain") {
				left = append(left, stack)
			}
		}
		if len(left) == 0 || time.Now().After(end) {
			return strings.Join(left, "\n\n")
		}
	}
}

// pair is two nodes joined by links: link i has the addresses 10.0.i.1 at the
// client and 10.0.i.2 at the server.
type pair struct {
	*testing.T
	net            *simnet.Net
	client, server *simnet.Node
	links          []*simnet.Link
	conns          []*mptcp.Conn // to be closed in the end
}

const serverPort = 80

func clientAddr(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(i), 1}) }
func serverAddr(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(i), 2}) }

// setup is what a pair is made from. The zero setup has one perfect link.
type setup struct {
	client, server *mptcp.Config
	links          []link.Config
	mtu            int // of all links; 0 = 1500
}

// delayed is a link with a round trip of 20 ms.
var delayed = link.Config{Delay: 10 * time.Millisecond}

func newPair(t *testing.T, s setup) *pair {
	t.Helper()
	p := &pair{T: t, net: simnet.New(1)}
	p.client, p.server = p.net.Node(s.client), p.net.Node(s.server)
	if s.links == nil {
		s.links = []link.Config{{}}
	}
	for i, shape := range s.links {
		p.links = append(p.links, p.net.Join(fmt.Sprintf("link%d", i),
			simnet.End{Node: p.client, Addr: clientAddr(i)},
			simnet.End{Node: p.server, Addr: serverAddr(i)},
			simnet.LinkConfig{Shape: shape, MTU: s.mtu, SegmentMax: 60000}))
	}
	return p
}

// inBubble runs f with virtual time and closes the network after it.
func inBubble(t *testing.T, s setup, f func(p *pair)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, s)
		defer func() {
			p.net.Close()
			for _, c := range p.conns {
				c.Close()
			}
			synctest.Wait()
			require.Zero(t, p.net.Held(), "packets are held though every connection is over")
		}()
		f(p)
	})
}

// listen listens at the server on all addresses.
func (p *pair) listen() *mptcp.Listener {
	p.Helper()
	return p.listenWith(&mptcp.ListenConfig{Stack: p.server.Stack})
}

func (p *pair) listenWith(lc *mptcp.ListenConfig) *mptcp.Listener {
	p.Helper()
	l, err := lc.Listen(p.Context(), "mptcp", fmt.Sprintf(":%d", serverPort))
	require.NoError(p, err)
	return l.(*mptcp.Listener)
}

// target is the server's address on link 0.
func (p *pair) target() netip.AddrPort { return netip.AddrPortFrom(serverAddr(0), serverPort) }

// dial connects the client to the server.
func (p *pair) dial() *mptcp.Conn {
	p.Helper()
	d := mptcp.Dialer{Stack: p.client.Stack}
	c, err := d.DialMPTCP(p.Context(), p.target())
	require.NoError(p, err)
	p.conns = append(p.conns, c)
	return c
}

// connect returns both ends of a new connection.
func (p *pair) connect() (client, server *mptcp.Conn) {
	p.Helper()
	l := p.listen()
	defer l.Close()
	client = p.dial()
	server, err := l.AcceptMPTCP()
	require.NoError(p, err)
	p.conns = append(p.conns, server)
	return client, server
}

// settle lets everything happen that needs no further input within d.
func settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// goResult runs f in a goroutine and returns where its result will be.
func goResult[T any](f func() (T, error)) <-chan result[T] {
	ch := make(chan result[T], 1)
	go func() {
		v, err := f()
		ch <- result[T]{v, err}
	}()
	return ch
}

type result[T any] struct {
	value T
	err   error
}

// pattern returns n bytes that repeat only after a prime number of them.
func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i % 251)
	}
	return b
}

func end(n *simnet.Node, a netip.Addr) simnet.End { return simnet.End{Node: n, Addr: a} }

func linkOf(shape link.Config) simnet.LinkConfig { return simnet.LinkConfig{Shape: shape} }
