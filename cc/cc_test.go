package cc_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/cc"
)

const mss = 1000

// group returns a new group of the algorithm called name.
func group(t testing.TB, name string) cc.Group {
	t.Helper()
	f, err := cc.ByName(name)
	require.NoError(t, err)
	return f()
}

// avoiding are parameters of a subflow that starts in congestion avoidance
// with a window of so many segments.
func avoiding(segments float64) cc.Params {
	return cc.Params{MSS: mss, InitialWindow: segments * mss, InitialSsthresh: 1}
}

// ack is an ACK of so many bytes that the window may grow by.
func ack(bytes int) *cc.Sample {
	return &cc.Sample{Now: time.Second, MSS: mss, Acked: bytes, Delivered: bytes, CwndLimited: true}
}

// flight is the sample of a signal that came with so many segments in flight.
func flight(segments float64) *cc.Sample {
	return &cc.Sample{Now: time.Second, MSS: mss, InFlight: int(segments * mss)}
}

// near fails unless got is want within the tolerance of golden values, 1e-9
// relative.
func near(t testing.TB, want, got float64, why string) {
	t.Helper()
	require.InEpsilon(t, want, got, 1e-9, why)
}

func segments(c cc.Controller) float64 { return c.State().Cwnd / mss }
func threshold(c cc.Controller) float64 {
	return c.State().Ssthresh / mss
}

// paced are the algorithms whose window follows from a rate.
var paced = []string{"bbr", "coupled-bbr"}

// windowed returns the names of the others, which obey RFC 5681's rules.
func windowed() []string {
	return slices.DeleteFunc(cc.Names(), func(name string) bool { return slices.Contains(paced, name) })
}

func TestNames(t *testing.T) {
	names := []string{
		"balia", "bbr", "coupled", "coupled-bbr", "cubic", "dctcp", "default", "ewtcp", "lia", "lia-dctcp", "lia-exact",
		"mdtcp", "mptcpd", "olia", "reno", "semicoupled", "vegas", "wvegas", "xmp",
	}
	require.Equal(t, names, cc.Names())
	require.Contains(t, cc.Names(), cc.Default)
	for _, name := range append(cc.Names(), "") {
		f, err := cc.ByName(name)
		require.NoError(t, err)
		require.NotNil(t, f().Add(cc.Params{MSS: mss}))
	}
	_, err := cc.ByName("tahoe")
	require.EqualError(t, err, `congestion control "tahoe" is unknown (known: `+strings.Join(names, ", ")+`)`)
}

// A program's own algorithms are found beside those of the package, and before
// them.
func TestRegistry(t *testing.T) {
	reno, err := cc.ByName("reno")
	require.NoError(t, err)
	r := cc.Registry{"tahoe": reno, "cubic": cc.DCTCP{}.Group}
	require.Contains(t, r.Names(), "tahoe")
	require.Len(t, r.Names(), len(cc.Names())+1, "cubic is replaced")
	for name, exact := range map[string]bool{"tahoe": false, "cubic": true, "vegas": false, "xmp": true} {
		f, err := r.ByName(name)
		require.NoError(t, err)
		_, ok := f().(cc.ECNUser)
		require.Equal(t, exact, ok, name)
	}
	_, err = r.ByName("newest")
	require.ErrorContains(t, err, "reno, semicoupled, tahoe, vegas")
}

// What lives on marks asks for them.
func TestECNUsers(t *testing.T) {
	for _, name := range cc.Names() {
		_, ok := group(t, name).(cc.ECNUser)
		require.Equal(t, slices.Contains([]string{"dctcp", "lia-dctcp", "mdtcp", "mptcpd", "xmp"}, name), ok, name)
	}
}

// RFC 6928, Section 2: "min (10*MSS, max (2*MSS, 14600))".
func TestInitialWindow(t *testing.T) {
	for _, name := range cc.Names() {
		for mss, want := range map[int]float64{536: 5360, 1460: 14600, 1500: 14600, 8960: 17920} {
			s := group(t, name).Add(cc.Params{MSS: mss}).State()
			require.Equal(t, want, s.Cwnd, "%s, mss %d", name, mss)
			require.True(t, math.IsInf(s.Ssthresh, 1))
			require.Zero(t, s.PacingRate)
		}
	}
}

// RFC 5681, Section 3.1: "cwnd += min (N, SMSS)" for each ACK, except with
// HyStart++.
func TestSlowStart(t *testing.T) {
	for _, name := range windowed() {
		c := group(t, name).Add(cc.Params{MSS: mss, InitialWindow: 10 * mss})
		c.OnAck(ack(400))
		require.Equal(t, 10_400.0, c.State().Cwnd, "%s: part of a segment", name)
		c.OnAck(ack(mss))
		require.Equal(t, 11_400.0, c.State().Cwnd, "%s: a segment", name)
		c.OnAck(ack(5 * mss))
		want := 12_400.0
		if name == "cubic" || name == "default" {
			want = 16_400 // RFC 9406, Section 4.2: up to 8 segments an ACK
		}
		require.Equal(t, want, c.State().Cwnd, "%s: five segments at once", name)
	}
}

// A window that was not in full use, or that recovery governs, stays.
func TestGrowthNeedsFullWindow(t *testing.T) {
	for _, name := range windowed() {
		for _, p := range []cc.Params{avoiding(10), {MSS: mss, InitialWindow: 10 * mss}} {
			c := group(t, name).Add(p)
			for range 100 {
				idle := ack(mss)
				idle.CwndLimited = false
				c.OnAck(idle)
				recovering := ack(mss)
				recovering.InRecovery = true
				c.OnAck(recovering)
				c.OnAck(ack(0))
			}
			require.Equal(t, 10.0, segments(c), name)
		}
	}
}

// Reductions that all algorithms share, with the factor of each.
func TestReductions(t *testing.T) {
	for _, name := range windowed() {
		beta := share(name)
		tests := []struct {
			why            string
			loss           cc.Loss
			cwnd, flight   float64
			window, thresh float64
		}{
			{"fast retransmit", cc.LossFast, 10, 10, 10 * beta, 10 * beta},
			{"flight counts, not cwnd", cc.LossFast, 40, 10, 10 * beta, 10 * beta},
			{"limited transmit is left out", cc.LossFast, 10, 12, 10 * beta, 10 * beta},
			{"at least two segments", cc.LossFast, 10, 2, 2, 2},
			{"timeout", cc.LossTimeout, 10, 10, 1, 10 * beta},
			{"timeout of little", cc.LossTimeout, 10, 1, 1, 2},
		}
		for _, tt := range tests {
			c := group(t, name).Add(avoiding(tt.cwnd))
			c.OnLoss(tt.loss, flight(tt.flight))
			near(t, tt.window, segments(c), name+": "+tt.why)
			near(t, tt.thresh, threshold(c), name+": "+tt.why)
		}
	}
}

// share is what a loss leaves of the window of a subflow alone.
func share(name string) float64 {
	if name == "cubic" || name == "default" {
		return 0.7
	}
	return 0.5
}

// RFC 9438, Section 4.6: down to "a value of 1 SMSS".
func TestClassicMark(t *testing.T) {
	for _, name := range []string{"reno", "cubic", "vegas", "lia", "olia"} {
		c := group(t, name).Add(avoiding(10))
		c.OnLoss(cc.LossECN, flight(10))
		near(t, 10*share(name), segments(c), name)
		near(t, 10*share(name), threshold(c), name)
		c = group(t, name).Add(avoiding(1))
		c.OnLoss(cc.LossECN, flight(1))
		require.Equal(t, 1.0, segments(c), name)
	}
}

// A timeout within recovery is no second reduction, however much has been
// sent and has arrived since the first: with less than that outstanding the
// bound of RFC 5681, Section 3.1, holds all the same.
func TestTimeoutWithinRecovery(t *testing.T) {
	for _, name := range windowed() {
		beta := share(name)
		for outstanding, want := range map[float64]float64{20: 20 * beta, 100: 20 * beta, 8: 8 * beta} {
			c := group(t, name).Add(avoiding(20))
			c.OnLoss(cc.LossFast, flight(20))
			s := flight(outstanding)
			s.InRecovery = true
			c.OnLoss(cc.LossTimeout, s)
			near(t, want, threshold(c), name)
			near(t, 1, segments(c), name)
		}
	}
}

// RFC 5681, Section 3.1: when "the given segment has already been
// retransmitted by way of the retransmission timer at least once, the value
// of ssthresh is held constant".
func TestRepeatedTimeout(t *testing.T) {
	for _, name := range windowed() {
		c := group(t, name).Add(avoiding(20))
		c.OnLoss(cc.LossTimeout, flight(20))
		want := threshold(c)
		c.OnLoss(cc.LossTimeout, flight(1))
		require.Equal(t, want, threshold(c), name)
		require.Equal(t, 1.0, segments(c), name)

		c.OnAck(ack(mss))
		c.OnLoss(cc.LossTimeout, flight(2))
		require.Equal(t, 2.0, threshold(c), "%s: an ACK makes the next one the first again", name)
	}
}

func TestUndo(t *testing.T) {
	for _, name := range windowed() {
		for _, loss := range []cc.Loss{cc.LossFast, cc.LossTimeout, cc.LossECN} {
			c := group(t, name).Add(avoiding(20))
			c.OnLoss(cc.LossFast, flight(20))
			before := c.State()
			c.OnLoss(loss, flight(before.Cwnd/mss))
			require.NotEqual(t, before, c.State())
			c.Undo()
			require.Equal(t, before, c.State(), "%s: the last signal only", name)
			c.Undo()
			require.Equal(t, before, c.State(), "%s: once only", name)
		}

		c := group(t, name).Add(cc.Params{MSS: mss, InitialWindow: 20 * mss})
		c.Undo()
		require.Equal(t, 20.0, segments(c), "%s: nothing to undo", name)
		c.OnLoss(cc.LossTimeout, flight(20))
		c.OnLoss(cc.LossTimeout, flight(1))
		c.Undo()
		require.Equal(t, 20.0, segments(c), "%s: a row of timeouts is one signal", name)
		require.True(t, math.IsInf(threshold(c), 1), name)
	}
}

// A window that has outgrown what it had before the signal is kept.
func TestUndoKeepsLargerWindow(t *testing.T) {
	for _, name := range windowed() {
		c := group(t, name).Add(cc.Params{MSS: mss, InitialWindow: 4 * mss})
		c.OnLoss(cc.LossFast, flight(4))
		for i := 0; i < 100 && segments(c) < 6; i++ {
			s := ack(int(c.State().Cwnd))
			s.Now += time.Duration(i) * 100 * time.Millisecond
			s.SRTT, s.RTT, s.Round = 100*time.Millisecond, 100*time.Millisecond, uint64(i/3)
			c.OnAck(s)
		}
		grown := segments(c)
		require.GreaterOrEqual(t, grown, 6.0, name)
		c.Undo()
		require.Equal(t, grown, segments(c), name)
	}
}

// Whatever comes, windows are finite and not below their floors.
func TestFloors(t *testing.T) {
	for _, name := range cc.Names() {
		for seed := range uint64(50) {
			rng := rand.New(rand.NewPCG(seed, 1))
			g := group(t, name)
			var cs []cc.Controller
			for range 1 + rng.IntN(4) {
				cs = append(cs, g.Add(cc.Params{MSS: mss}))
			}
			now := time.Second
			for range 500 {
				now += time.Duration(rng.IntN(50)) * time.Millisecond
				c := cs[rng.IntN(len(cs))]
				random(rng, now, c)
				for _, c := range cs {
					s := c.State()
					least := 2.0 * mss
					switch {
					case slices.Contains(paced, name):
						least = math.Inf(1)
					case name == "coupled":
						least = mss // its windows stay at one segment after a loss
					}
					if !(s.Cwnd >= mss && s.Ssthresh >= least && s.Cwnd < 1e12 && s.PacingRate >= 0 && s.PacingRate < 1e12) {
						require.FailNow(t, "out of bounds", "%s, seed %d: %+v", name, seed, s)
					}
				}
			}
		}
	}
}

// random gives a controller some event.
func random(rng *rand.Rand, now time.Duration, c cc.Controller) {
	s := &cc.Sample{
		Now: now, MSS: mss, SRTT: time.Duration(rng.IntN(200)) * time.Millisecond,
		RTT: time.Duration(rng.IntN(200)) * time.Millisecond, ECN: rng.IntN(4) > 0,
		Acked: rng.IntN(4 * mss), InFlight: rng.IntN(100 * mss),
		CwndLimited: rng.IntN(8) > 0, InRecovery: rng.IntN(8) == 0, Round: uint64(now / (100 * time.Millisecond)),
	}
	s.Delivered = s.Acked
	s.SentInFlight, s.LostSince, s.GotSince = s.InFlight, rng.IntN(mss), s.Acked+rng.IntN(50*mss)
	s.DeliveryRate, s.AppLimited = 1e6*rng.Float64(), rng.IntN(4) == 0
	if rng.IntN(4) == 0 {
		s.Marked = s.Delivered
	}
	if rng.IntN(20) == 0 {
		s.Lost = s.LostSince
	}
	switch n := rng.IntN(100); {
	case n < 3:
		c.OnLoss(cc.LossTimeout, s)
	case n < 8:
		c.OnLoss(cc.LossFast, s)
	case n < 11:
		c.OnLoss(cc.LossECN, s)
	case n < 13:
		c.Undo()
	default:
		c.OnAck(s)
	}
}

// saw runs a controller over a path of the RTT that loses every n-th segment
// and returns the mean window in segments over whole periods.
func saw(c cc.Controller, rtt time.Duration, n float64, periods int) float64 {
	const perRound = 16 // ACKs a round trip
	now, round := time.Second, uint64(0)
	sent, area, rounds := 0.0, 0.0, 0.0
	for p := 0; p < periods; {
		w := c.State().Cwnd
		s := ack(int(w / perRound))
		s.Now, s.SRTT, s.Round = now, rtt, round
		s.InFlight = int(w)
		c.OnAck(s)
		now += rtt / perRound
		round++
		sent += w / mss / perRound
		if p > periods/3 {
			area, rounds = area+w/mss, rounds+1
		}
		if sent >= n {
			sent -= n
			c.OnLoss(cc.LossFast, s)
			p++
		}
	}
	return area / rounds
}

func BenchmarkOnAck(b *testing.B) {
	for _, name := range cc.Names() {
		b.Run(name, func(b *testing.B) {
			g := group(b, name)
			var cs [8]cc.Controller
			for i := range cs {
				cs[i] = g.Add(avoiding(100))
			}
			s := ack(mss)
			s.SRTT, s.InFlight = 50*time.Millisecond, 100*mss
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				s.Now += time.Millisecond
				cs[i&7].OnAck(s)
			}
		})
	}
}
