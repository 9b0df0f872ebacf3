package cc_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/cc"
)

// pipe is a path of a rate and a round-trip time with one queue, as a fluid,
// that a controller fills; it hands out an ACK each tick.
type pipe struct {
	c      cc.Controller
	rate   float64 // bytes/s
	rtt    time.Duration
	buffer float64 // bytes
	loss   float64 // share lost, evenly spread
	marked bool    // what is delivered now

	now        time.Duration
	queue      float64
	round      uint64
	roundAt    time.Duration
	lost       float64
	inRecovery time.Duration
	rates      []float64 // delivery rate seen at each tick
}

const tick = time.Millisecond

// step lets a tick pass.
func (p *pipe) step() {
	p.now += tick
	st := p.c.State()
	bdp := p.rate * p.rtt.Seconds()
	rtt := p.rtt + time.Duration(p.queue/p.rate*1e9)
	flight := st.Cwnd
	if st.PacingRate > 0 {
		flight = min(flight, st.PacingRate*rtt.Seconds())
	}
	p.queue = max(flight-bdp, 0)
	overflow := max(p.queue-p.buffer, 0)
	p.queue -= overflow
	rate := min(flight/rtt.Seconds(), p.rate)
	got := rate * tick.Seconds()
	lost := got*p.loss + overflow*tick.Seconds()/rtt.Seconds()
	p.lost += lost
	if p.now-p.roundAt >= rtt {
		p.round++
		p.roundAt = p.now
	}
	s := &cc.Sample{
		Now: p.now, RTT: rtt, SRTT: rtt, MinRTT: p.rtt, MSS: mss, Acked: int(got), Delivered: int(got),
		InFlight: int(flight), DeliveryRate: rate, CwndLimited: st.PacingRate == 0 || st.Cwnd < st.PacingRate*rtt.Seconds(),
		Round: p.round, SentInFlight: int(flight), GotSince: int(rate * rtt.Seconds()),
		LostSince: int(lost / tick.Seconds() * rtt.Seconds()),
	}
	if p.marked {
		s.Marked = s.Delivered
	}
	if p.lost >= mss {
		p.lost -= mss
		s.Lost = mss
		if p.now > p.inRecovery {
			p.c.OnLoss(cc.LossFast, s)
			p.inRecovery = p.now + rtt
		}
	}
	s.InRecovery = p.now <= p.inRecovery
	p.c.OnAck(s)
	p.rates = append(p.rates, rate)
}

// mean returns the mean rate over the last so many ticks, as a share.
func (p *pipe) mean(ticks int) float64 {
	sum := 0.0
	for _, r := range p.rates[len(p.rates)-ticks:] {
		sum += r
	}
	return sum / float64(ticks) / p.rate
}

func (p *pipe) run(d time.Duration) {
	for range d / tick {
		p.step()
	}
}

func newPipe(c cc.Controller, loss float64) *pipe {
	// 100 Mb/s, 20 ms: a BDP of 250 000 bytes.
	return &pipe{c: c, rate: 12.5e6, rtt: 20 * time.Millisecond, buffer: 250e3, loss: loss, now: time.Second}
}

// The draft's steady state: nearly all of the bandwidth at a queue far below
// the BDP, and ProbeRTT every five seconds, at half the BDP for 200 ms.
func TestBBRFillsThePipe(t *testing.T) {
	p := newPipe(group(t, "bbr").Add(cc.Params{MSS: mss}), 0)
	p.run(time.Second)
	require.Greater(t, p.mean(100), .85, "within a second")
	least := math.Inf(1)
	for range 10 * time.Second / tick {
		p.step()
		least = min(least, p.c.State().Cwnd)
	}
	require.Greater(t, p.mean(9000), .93)
	require.InEpsilon(t, 125e3, least, .1, "half the BDP in ProbeRTT")
}

// Random loss below 2 % a round trip is no reason to slow down much; Reno
// would be at a tenth.
func TestBBRBearsRandomLoss(t *testing.T) {
	p := newPipe(group(t, "bbr").Add(cc.Params{MSS: mss}), .001)
	p.run(20 * time.Second)
	require.Greater(t, p.mean(10_000), .85)
}

// A path that becomes half as fast is followed within two cycles.
func TestBBRFollowsTheRate(t *testing.T) {
	p := newPipe(group(t, "bbr").Add(cc.Params{MSS: mss}), 0)
	p.run(5 * time.Second)
	p.rate /= 2
	p.run(10 * time.Second)
	require.InEpsilon(t, 6.25e6, p.c.State().PacingRate, .3)
	require.Less(t, p.queue, 200e3)
	p.rate *= 2
	p.run(10 * time.Second)
	require.InEpsilon(t, 12.5e6, p.c.State().PacingRate, .3)
}

// A timeout begins again with one segment; if it was spurious the window comes
// back.
func TestBBRTimeout(t *testing.T) {
	p := newPipe(group(t, "bbr").Add(cc.Params{MSS: mss}), 0)
	p.run(3 * time.Second)
	before := p.c.State().Cwnd
	p.c.OnLoss(cc.LossTimeout, flight(100))
	require.Equal(t, float64(mss), p.c.State().Cwnd)
	p.c.Undo()
	require.Equal(t, before, p.c.State().Cwnd)
	p.c.OnLoss(cc.LossTimeout, flight(100))
	p.run(time.Second)
	require.InEpsilon(t, before, p.c.State().Cwnd, .3, "or when data gets through again")
}

// Until there is an RTT the subflow may pace as it likes; then it is 2.77
// initial windows a round trip.
func TestBBRInitialPacing(t *testing.T) {
	c := group(t, "bbr").Add(cc.Params{MSS: mss, InitialWindow: 10 * mss})
	require.Zero(t, c.State().PacingRate)
	s := ack(mss)
	s.RTT, s.SRTT = 100*time.Millisecond, 100*time.Millisecond
	c.OnAck(s)
	require.InEpsilon(t, 277e3, c.State().PacingRate, 1e-9)
}

// Marks are nothing to it.
func TestBBRIgnoresMarks(t *testing.T) {
	c := group(t, "bbr").Add(cc.Params{MSS: mss})
	before := c.State()
	c.OnLoss(cc.LossECN, flight(10))
	require.Equal(t, before, c.State())
}

// Bandwidths of 4 and 2 in a cycle of 8: shares of .8 and .4, gains of 4.4/6
// and 1.2/6. Of n equal paths each has 1/n.
func TestCoupledBBRGains(t *testing.T) {
	require.Equal(t, []float64{1}, cc.CruiseGains(8, 4))
	got := cc.CruiseGains(8, 4, 2)
	near(t, 4.4/6, got[0], "x = 4")
	near(t, .2, got[1], "x = 2")
	for _, gain := range cc.CruiseGains(8, 3, 3, 3) {
		near(t, (8./3-2)/6, gain, "a third each over the cycle")
	}
	require.Equal(t, []float64{0, 0, 0, 0}, cc.CruiseGains(8, 1, 1, 1, 1))
}

// together runs pipes of one group for a while in lockstep. If they share a
// bottleneck the same round trips of each are marked, which BBR ignores but for
// finding that out; otherwise each has marks of its own.
func together(pipes []*pipe, share bool, d time.Duration, look func(*pipe)) {
	for range d / tick {
		for i, p := range pipes {
			seed := uint64(p.now / p.rtt)
			if !share {
				seed += uint64(i) << 32
			}
			p.marked = rand.New(rand.NewPCG(seed, 1)).IntN(2) == 1
			p.step()
			look(p)
		}
	}
}

// Two that share a bottleneck have half of what they would have there each; two
// that don't have it all.
func TestCoupledBBRCouplesWhatShares(t *testing.T) {
	for _, share := range []bool{true, false} {
		g := group(t, "coupled-bbr")
		pipes := []*pipe{newPipe(g.Add(cc.Params{MSS: mss}), 0), newPipe(g.Add(cc.Params{MSS: mss}), 0)}
		together(pipes, share, 30*time.Second, func(*pipe) {})
		for _, p := range pipes {
			if share {
				require.InDelta(t, .5, p.mean(20_000), .1)
			} else {
				require.Greater(t, p.mean(20_000), .9)
			}
		}
	}
}

// A gain of nothing still leaves four segments a round trip.
func TestCoupledBBRKeepsProbing(t *testing.T) {
	g := cc.CoupledBBR{Phases: 8}.Group()
	pipes := make([]*pipe, 4)
	for i := range pipes {
		pipes[i] = newPipe(g.Add(cc.Params{MSS: mss}), 0)
	}
	least := math.Inf(1)
	together(pipes, true, 5*time.Second, func(p *pipe) { least = min(least, p.c.State().PacingRate) })
	near(t, 4*mss/.02, least, "four segments in 20 ms")
}

// Those that share a bottleneck take turns at probing, each gets one, and while one
// probes the other cruises at next to nothing.
func TestCoupledBBRTakesTurns(t *testing.T) {
	g := group(t, "coupled-bbr")
	pipes := []*pipe{newPipe(g.Add(cc.Params{MSS: mss}), 0), newPipe(g.Add(cc.Params{MSS: mss}), 0)}
	together(pipes, true, 30*time.Second, func(*pipe) {})
	probes, up, beside := map[*pipe]int{}, map[*pipe]bool{}, 0
	together(pipes, true, 20*time.Second, func(p *pipe) {
		now := p.c.State().PacingRate > 1.1*p.rate
		if now && !up[p] {
			probes[p]++
		}
		if up[p] = now; !now || p != pipes[0] {
			return
		}
		require.False(t, up[pipes[1]], "both probe")
		if beside++; beside > 5 {
			require.Less(t, pipes[1].c.State().PacingRate, .1*p.rate)
		}
	})
	require.InDelta(t, probes[pipes[0]], probes[pipes[1]], 1)
	alone := newPipe(group(t, "bbr").Add(cc.Params{MSS: mss}), 0)
	alone.run(30 * time.Second)
	n, was := 0, false
	for range 20 * time.Second / tick {
		alone.step()
		now := alone.c.State().PacingRate > 1.1*alone.rate
		if now && !was {
			n++
		}
		was = now
	}
	require.InEpsilon(t, n, probes[pipes[0]]+probes[pipes[1]], .35, "as often as one BBR")
}

// One that falls silent while it probes does not hold the others down.
func TestCoupledBBRProbeFallsSilent(t *testing.T) {
	g := group(t, "coupled-bbr")
	pipes := []*pipe{newPipe(g.Add(cc.Params{MSS: mss}), 0), newPipe(g.Add(cc.Params{MSS: mss}), 0)}
	together(pipes, true, 30*time.Second, func(*pipe) {})
	for pipes[0].c.State().PacingRate < 1.1*pipes[0].rate {
		together(pipes, true, tick, func(*pipe) {})
	}
	pipes[1].run(100 * time.Millisecond)
	require.Greater(t, pipes[1].c.State().PacingRate, .4*pipes[1].rate)
}
