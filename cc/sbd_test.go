package cc_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/cc"
)

// RFC 8382, Section 3.2: delays of {1, 1, 1, 5} have a mean of 2 and a skewness
// of +.5: queues pass; {5, 5, 5, 1} have 4 and -.5: a bottleneck. The mean
// absolute deviation from the mean is 1.5 in both.
func TestSBDStatistics(t *testing.T) {
	for _, tt := range []struct {
		delays     []float64
		mean, skew float64
	}{
		{[]float64{1, 1, 1, 5}, 2, .5},
		{[]float64{5, 5, 5, 1}, 4, -.5},
	} {
		var f cc.SBD
		for range 31 {
			f.Interval(1, 50, tt.delays...)
		}
		mean, skew, deviation, freq, loss := f.Stats()
		near(t, tt.mean, mean, "mean")
		near(t, tt.skew, skew, "skewness")
		near(t, 1.5, deviation, "deviation")
		require.Zero(t, freq, "the mean crosses nothing")
		near(t, .02, loss, "loss")
	}
}

// Means that swing to both sides of the long-term one cross it at each swing.
func TestSBDOscillation(t *testing.T) {
	var f cc.SBD
	for i := range 60 {
		d := 10.0
		if i/5%2 == 1 {
			d = 20
		}
		f.Interval(0, 100, d, d)
	}
	_, _, _, freq, _ := f.Stats()
	near(t, 10./50, freq, "one crossing in five intervals")
}

// Section 3.3.1, step by step, with flows that differ by one statistic each.
func TestSBDGrouping(t *testing.T) {
	flow := func(scale float64, lost int, swing int) *cc.SBD {
		f := &cc.SBD{}
		for i := range 70 {
			base := 0.0
			if swing > 0 && i/swing%2 == 1 {
				base = 40
			}
			f.Interval(lost, 100, base+5*scale, base+5*scale, base+5*scale, base+scale)
		}
		return f
	}
	a, b := flow(1, 0, 0), flow(1, 0, 0)
	idle := &cc.SBD{}
	for range 70 {
		idle.Interval(0, 100, 1, 1, 1, 5)
	}
	require.Equal(t, [][]int{{0, 1}}, cc.SBDGroups(a, b))
	require.Equal(t, [][]int{{0, 2}}, cc.SBDGroups(a, idle, b), "what traverses no bottleneck is in no group")
	require.Len(t, cc.SBDGroups(a, flow(2, 0, 0)), 2, "deviation")
	require.Len(t, cc.SBDGroups(flow(1, 15, 0), flow(1, 30, 0)), 2, "loss")
	require.Len(t, cc.SBDGroups(flow(1, 2, 0), flow(1, 4, 0)), 1, "loss too rare to tell")
	require.Len(t, cc.SBDGroups(flow(1, 0, 3), flow(1, 0, 0)), 2, "oscillation")
}

// delays feeds subflows of a group with the delays, and the marks, of queues
// that random arrivals fill; of[i] says which queue subflow i is in. It returns
// in what share of the times that see was called the first two were in one
// set.
func delays(t *testing.T, name string, of []int, d time.Duration, marks bool) (share float64, first time.Duration) {
	g := group(t, name)
	var cs []cc.Controller
	for range of {
		cs = append(cs, g.Add(avoiding(100)))
	}
	rng := rand.New(rand.NewPCG(3, 4))
	queues := make([]float64, 4) // seconds of delay
	for q := range queues {
		queues[q] = .06 * rng.Float64()
	}
	speed := .0004 // s a tick
	if marks {
		speed = .004 // where queues mark early, teeth take a few round trips
	}
	together, seen := 0, 0
	for now := time.Duration(0); now < d; now += 10 * time.Millisecond {
		for q := range queues {
			// Sawteeth of a window, and noise.
			queues[q] += speed * rng.Float64()
			if queues[q] > .06 {
				queues[q] = .02 + .03*rng.Float64()
			}
		}
		for i, q := range of {
			s := path{100, .1}.sample(mss)
			s.Now = now + time.Second
			s.OneWayDelay = time.Duration((queues[q]+.002*rng.Float64())*1e3) * time.Millisecond
			if marks && queues[q] > .03 {
				s.Marked = mss
			}
			cs[i].OnAck(s)
		}
		sets, _ := g.(cc.BottleneckObserver).Shared()
		in := false
		for _, s := range sets {
			n := 0
			for _, c := range s {
				if c == cs[0] || c == cs[1] {
					n++
				}
			}
			in = in || n == 2
		}
		if in && first == 0 {
			first = now
		}
		if now > 25*time.Second {
			seen++
			if in {
				together++
			}
		}
	}
	return float64(together) / math.Max(float64(seen), 1), first
}

// By delays alone subflows of one queue are told from those of two, not before
// 21 s.
func TestDetectorByDelay(t *testing.T) {
	share, first := delays(t, "default", []int{0, 0}, 90*time.Second, false)
	require.Greater(t, share, .9)
	require.GreaterOrEqual(t, first, 21*time.Second)
	share, _ = delays(t, "default", []int{0, 1}, 90*time.Second, false)
	require.Less(t, share, .1)
	share, _ = delays(t, "default", []int{0, 0, 1, 1}, 90*time.Second, false)
	require.Greater(t, share, .9)
}

// Marks tell within 32 round trips of 100 ms, if there is a signal in them.
func TestDetectorByMarks(t *testing.T) {
	_, first := delays(t, "mptcpd", []int{0, 0}, 10*time.Second, true)
	require.NotZero(t, first)
	require.LessOrEqual(t, first, 3200*time.Millisecond)
	_, first = delays(t, "mptcpd", []int{0, 1}, 10*time.Second, true)
	require.Zero(t, first)
}

// Once subflows were found to share a bottleneck they grow together and halve;
// before, each is CUBIC.
func TestDetectingCouples(t *testing.T) {
	grow := func(cs []cc.Controller) float64 {
		before := segments(cs[0]) + segments(cs[1])
		for _, c := range cs {
			s := path{100, .1}.sample(int(c.State().Cwnd))
			s.Now, s.Round = time.Hour, 1<<40
			c.OnAck(s)
		}
		return segments(cs[0]) + segments(cs[1]) - before
	}
	g := cc.Detecting{TogetherAtFirst: true}.Group()
	cs := []cc.Controller{g.Add(avoiding(100)), g.Add(avoiding(100))}
	for _, c := range cs {
		c.OnAck(path{100, .1}.sample(0))
	}
	require.InDelta(t, .5, grow(cs), .01, "LIA at equal windows: half a segment a round trip in all")
	cs[0].OnLoss(cc.LossFast, flight(segments(cs[0])))
	require.InDelta(t, 50, segments(cs[0]), 1)
	g.Remove(cs[1])
	w := segments(cs[0])
	cs[0].OnLoss(cc.LossFast, flight(w))
	near(t, .7*w, segments(cs[0]), "alone it is CUBIC")
}

// RFC 9438, Section 4.6: CUBIC leaves 0.7 of the window. The second subflow leaves
// half of it once, after its first loss, the third one twice; one of a set found to
// share a bottleneck halves anyway.
func TestDetectingKeepsOutOfStep(t *testing.T) {
	g := cc.Detecting{}.Group()
	var cs []cc.Controller
	for range 3 {
		cs = append(cs, g.Add(avoiding(100)))
	}
	for loss, want := range [][]float64{{.7, .7, .7}, {.7, .5, .5}, {.7, .7, .5}, {.7, .7, .7}} {
		for i, c := range cs {
			before := segments(c)
			c.OnLoss(cc.LossFast, flight(before))
			near(t, want[i]*before, segments(c), fmt.Sprintf("loss %d of subflow %d", loss, i))
		}
	}
}

// A connection may lose all its subflows and go on with others.
func TestDetectingSurvivesTheLossOfAllSubflows(t *testing.T) {
	g := cc.Detecting{}.Group()
	for range 2 {
		cs := []cc.Controller{g.Add(avoiding(100)), g.Add(avoiding(100))}
		for _, c := range cs {
			before := segments(c)
			c.OnAck(path{100, .1}.sample(100 * mss))
			require.Greater(t, segments(c), before)
		}
		for _, c := range cs {
			g.Remove(c)
		}
	}
}

// Verdicts that change nothing allocate nothing, by delays or by marks.
func TestVerdictsAllocateNothing(t *testing.T) {
	for _, name := range []string{"default", "mptcpd"} {
		g := group(t, name)
		cs := []cc.Controller{g.Add(avoiding(100)), g.Add(avoiding(100)), g.Add(avoiding(100))}
		rng := rand.New(rand.NewPCG(1, 2))
		s := path{100, .1}.sample(mss)
		ack := func() {
			s.Now += 25 * time.Millisecond
			s.OneWayDelay = time.Duration(1+rng.IntN(60)) * time.Millisecond
			s.Marked = rng.IntN(2) * mss
			for _, c := range cs {
				c.OnAck(s)
			}
		}
		for range 2000 {
			ack()
		}
		sets, _ := g.(cc.BottleneckObserver).Shared()
		require.Equal(t, [][]cc.Controller{cs}, sets, "there are verdicts")
		require.Zero(t, testing.AllocsPerRun(2000, ack), name)
	}
}
