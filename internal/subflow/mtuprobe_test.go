package subflow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/cc"
	"github.com/gomptcp/gomptcp/internal/subflow"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// blackHole drops packets of more than n bytes of payload without a word.
func blackHole(n int) func(int, *wire.Segment) bool {
	return func(_ int, seg *wire.Segment) bool { return seg.PayloadLen() > n }
}

// A path that never carries full packets, and one that ceases to, may cost
// timeouts but not the connection, and the size found is nearly the best.
func TestMTUBlackHole(t *testing.T) {
	for _, later := range []bool{false, true} {
		for _, super := range []int{0, 20000} {
			l := link{rate: 1.25e6, delay: 10 * time.Millisecond, queue: 25000}
			p := newPair(t, pairConfig{cc: "cubic", ab: l, ba: l, a: func(c *subflow.Config) { c.SegmentMax = super }})
			p.transfer(20<<20, 0)
			if later {
				p.run(time.Second)
			}
			p.links[0].drop = blackHole(1000)
			p.finish(2 * time.Minute)
			st := p.stats()[0]
			require.EqualValues(t, 1, st.BlackHoles)
			require.LessOrEqual(t, st.MSS, 1000)
			require.Greater(t, st.MSS, 1000-2*20, "the search ends there")
		}
	}
}

// RFC 4821: losses of probes alone do not change the congestion window.
func TestMTUProbesUpwards(t *testing.T) {
	for _, noSACK := range []bool{false, true} {
		l := link{delay: 10 * time.Millisecond, drop: blackHole(1200)}
		p := newPair(t, pairConfig{ab: l, ba: l, a: func(c *subflow.Config) {
			c.StartMTU, c.NoSACK = 600, noSACK
		}})
		p.transfer(20<<20, 0)
		p.ends[1].buffer = 20000
		p.finish(2 * time.Minute)
		st := p.stats()[0]
		require.Zero(t, st.Recoveries)
		require.Zero(t, st.Timeouts)
		require.Greater(t, st.MSS, 1200-20)
		require.LessOrEqual(t, st.MSS, 1200)
		require.GreaterOrEqual(t, p.links[0].dropped, 3)
	}
}

func TestMTUProbeByHand(t *testing.T) {
	h := newEstablished(t, func(c *subflow.Config) { c.StartMTU = 520 })
	require.Equal(t, 500, h.s.MSS())
	h.push(8000)
	seg := h.want("the probe", pkt{flags: ".", seq: 1, ack: 1, len: 1000})
	require.Zero(t, seg.SegSize)
	h.want("as before", pkt{flags: ".", seq: 1001, ack: 1, len: 500})
	h.drain()
	h.now = h.now.Add(100 * time.Millisecond)
	h.in(pkt{flags: ".", seq: 1, ack: 1001})
	require.Equal(t, 1000, h.s.MSS())
	require.Equal(t, 1020, h.s.Stats().MTU)
	require.EqualValues(t, 1, h.s.Stats().MTUProbes)
}

// CVE-2024-50083: a probe holds no bytes of two mappings either. Guard: probeSize
// looks at the border.
func TestMTUProbeEndsAtABorder(t *testing.T) {
	h := newEstablished(t, func(c *subflow.Config) { c.StartMTU = 520 })
	h.push(700)
	h.push(8000)
	h.want("too few for a probe", pkt{flags: ".", seq: 1, ack: 1, len: 500})
	h.want("the rest", pkt{flags: ".", seq: 501, ack: 1, len: 200})
	h.want("the probe", pkt{flags: ".", seq: 701, ack: 1, len: 1000})
}

// RFC 8899, Section 4.6.2: a router that answers the probe names the next one.
func TestMTUProbeAnsweredByARouter(t *testing.T) {
	h := newEstablished(t, func(c *subflow.Config) { c.StartMTU = 620 })
	h.push(20000)
	h.want("the probe", pkt{flags: ".", seq: 1, ack: 1, len: 1000})
	h.want("as before", pkt{flags: ".", seq: 1001, ack: 1, len: 600})
	h.s.HandlePacketTooBig(h.now, localISS+1, 820)
	require.Equal(t, 600, h.s.MSS(), "still good")
	h.want("again", pkt{flags: ".", seq: 1, ack: 1, len: 600})
	h.want("again", pkt{flags: ".", seq: 601, ack: 1, len: 400})
	h.want("the next probe", pkt{flags: ".", seq: 1601, ack: 1, len: 800})
	require.Equal(t, []cc.Loss(nil), h.ctl.losses)
}

// After an ICMP message the path is probed again 10 minutes later.
func TestMTUIsRaisedAgain(t *testing.T) {
	h := newEstablished(t, func(c *subflow.Config) { c.KeepAlive.Idle = -1 })
	h.fill(1)
	h.s.HandlePacketTooBig(h.now, localISS+1, 620)
	h.want("again", pkt{flags: ".", seq: 1, ack: 1, len: 600})
	h.want("again", pkt{flags: ".", seq: 601, ack: 1, len: 400})
	h.in(pkt{flags: ".", seq: 1, ack: 1001})
	h.push(6000)
	h.want("no probe yet", pkt{flags: ".", seq: 1001, ack: 1, len: 600})
	h.drain()
	h.in(pkt{flags: ".", seq: 1, ack: 7001})
	h.advance(601 * time.Second)
	for i := 0; h.s.Stats().MTUProbes == 0; i++ {
		require.Less(t, i, 40)
		n := h.s.Room(h.now, 30000)
		h.push(n)
		sent := h.drain()
		require.Equal(t, n, sent)
		h.now = h.now.Add(10 * time.Millisecond)
		h.in(pkt{flags: ".", seq: 1, ack: 1 + int(h.s.Pushed())})
	}
	require.Equal(t, 1000, h.s.MSS())
}
