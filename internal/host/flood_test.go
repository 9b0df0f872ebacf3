package host_test

import (
	"math/rand/v2"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/host"
	"github.com/gomptcp/gomptcp/internal/mpconn"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/wire"
)

const floodSize = 200_000

// spoofed returns a source that does not exist.
func spoofed(rng *rand.Rand) netip.AddrPort {
	ip := [4]byte{172, byte(16 + rng.IntN(16)), byte(rng.IntN(256)), byte(1 + rng.IntN(254))}
	return netip.AddrPortFrom(netip.AddrFrom4(ip), uint16(1024+rng.IntN(60000)))
}

// silence has everything lost that goes to spoofed addresses.
func (l *lab) silence() {
	l.lost = func(seg *wire.Segment) bool { return seg.Dst.Addr().As4()[0] == 172 }
}

// heap returns the bytes that live on the heap.
func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// drainReplies takes the host's answers and returns how many there were.
func (n *node) drainReplies() (answers int) {
	var seg wire.Segment
	for n.PollSegment(n.lab.now, &seg) {
		answers++
		seg.Reset()
	}
	return answers
}

func TestSYNFlood(t *testing.T) {
	l := newLab(t, host.Config{})
	l.silence()
	ln := l.listen(config(t), 0)
	rng := rand.New(rand.NewPCG(1, 2))
	var before int
	for i := range floodSize {
		syn := capableSYN(1)
		syn.Src = spoofed(rng)
		syn.Seq = syn.Seq.Add(int(rng.Uint32()))
		if i%2 == 0 {
			syn.Has = wire.OptMSS
		}
		l.server.deliver(syn)
		l.server.drainReplies()
		switch {
		case i == floodSize/100:
			before = heap()
		case i%(floodSize/4) == floodSize/8:
			l.now = l.now.Add(time.Second)
			c, s := l.connect(config(t), ln)
			l.exchange(c, s)
			require.True(t, c.IsMPTCP() && s.IsMPTCP())
		}
	}
	n := l.server.Counters()
	require.LessOrEqual(t, n.HalfOpen, 64, "half the default backlog")
	require.LessOrEqual(t, n.Conns, 64+4)
	require.Greater(t, n.MIB[host.MIBSyncookiesSent], uint64(floodSize-1000))
	require.Less(t, heap()-before, 4<<20)
	require.Zero(t, ln.Pending())
}

func TestFloodOfJoinsToUnknownTokens(t *testing.T) {
	l := newLab(t, host.Config{})
	l.silence()
	ln := l.listen(config(t), 0)
	rng := rand.New(rand.NewPCG(1, 2))
	var before int
	for i := range floodSize {
		l.server.deliver(joinSYN(spoofed(rng), rng.Uint32()))
		require.Equal(t, 1, l.server.drainReplies(), "a RST")
		switch i {
		case floodSize / 100:
			before = heap()
		case floodSize / 2:
			c, s := l.connect(config(t), ln)
			l.exchange(c, s)
		}
	}
	n := l.server.Counters()
	require.Equal(t, 1, n.Conns)
	require.Zero(t, n.HalfOpenJoins)
	require.Equal(t, uint64(floodSize), n.Drops[reason.DropToken])
	require.Less(t, heap()-before, 4<<20)
}

// joinSYN is a SYN with MP_JOIN.
func joinSYN(from netip.AddrPort, token uint32) *wire.Segment {
	seg := synFrom(1)
	seg.Src = from
	seg.Has = wire.OptMPJoin
	seg.Join = wire.MPJoin{Form: wire.JoinSYN, Token: token, AddrID: 3, Nonce: 4}
	return seg
}

// TestFloodOfJoinsToAKnownToken has an attacker who has seen the token but
// not the keys: some of its joins stay half open, others come with a third
// ACK whose HMAC is wrong.
func TestFloodOfJoinsToAKnownToken(t *testing.T) {
	l := newLab(t, host.Config{})
	l.silence()
	cfg := config(t)
	cfg.Limits.Subflows = 16
	c, s := l.connect(config(t), l.listen(cfg, 0))
	l.exchange(c, s)
	rng := rand.New(rand.NewPCG(1, 2))
	token := uint32(s.Token())
	var before int
	for i := range floodSize {
		syn := joinSYN(spoofed(rng), token)
		if l.server.deliver(syn); l.server.drainReplies() > 0 {
			require.Equal(t, 8, l.server.Counters().HalfOpenJoins, "refused at the limit only")
		}
		if i%3 == 0 {
			l.forgeThirdACK(syn)
		}
		if i == floodSize/100 {
			before = heap()
		}
	}
	n := l.server.Counters()
	require.Equal(t, 1, n.Conns)
	require.LessOrEqual(t, n.HalfOpenJoins, 8)
	require.Less(t, heap()-before, 4<<20)
	for _, f := range s.AppendSubflows(nil) {
		require.Equal(t, f.Initial, f.Up)
	}

	// The connection works on, others begin, and once the half-open joins
	// are given up a true one succeeds.
	l.exchange(c, s)
	l.dialOnce(config(t), service)
	l.advance(5 * time.Minute)
	require.Zero(t, l.server.Counters().HalfOpenJoins)
	_, err := l.client.Open(l.now, c, mpconn.OpenArgs{Local: netip.AddrPortFrom(clientAddr2, 0), Remote: service})
	require.NoError(t, err)
	l.run()
	require.Equal(t, 2, s.Info().Subflows)
}

// forgeThirdACK answers the server's SYN/ACK to syn, if there is one, with a
// wrong HMAC.
func (l *lab) forgeThirdACK(syn *wire.Segment) {
	s := l.server.conns[0]
	var seg wire.Segment
	for s.PollSegment(l.now, &seg) {
		if seg.Dst == syn.Src && seg.Flags == wire.SYN|wire.ACK {
			ack := &wire.Segment{Src: syn.Src, Dst: syn.Dst}
			ack.Header = wire.Header{Seq: syn.Seq.Add(1), Ack: seg.Seq.Add(1), Flags: wire.ACK, Wnd: 1000}
			ack.Has = wire.OptMPJoin
			ack.Join = wire.MPJoin{Form: wire.JoinACK}
			l.server.deliver(ack)
		}
		seg.Reset()
	}
	for s.HasEvents() {
		l.server.Step(l.now, s)
	}
}

func TestHalfOpenJoinsAreBoundedPerHost(t *testing.T) {
	l := newLab(t, host.Config{MaxHalfOpen: 2})
	l.silence()
	ln := l.listen(config(t), 0)
	for range 3 {
		c, s := l.connect(config(t), ln)
		l.exchange(c, s)
		l.server.deliver(joinSYN(spoofed(rand.New(rand.NewPCG(1, uint64(s.Token())))), uint32(s.Token())))
	}
	require.Equal(t, 2, l.server.Counters().HalfOpenJoins)
	refusal := l.server.poll()
	for refusal != nil && !refusal.Flags.Has(wire.RST) {
		refusal = l.server.poll()
	}
	require.NotNil(t, refusal)
	require.Equal(t, wire.TCPRst{Reason: reason.ResetResources}, refusal.TCPRst)
}
