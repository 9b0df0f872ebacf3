package link_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/internal/mono"
)

const start = mono.Time(time.Second)

func seeded(seed uint64) link.Rand { return rand.New(rand.NewPCG(seed, seed)) }

// after is an instant in microseconds after start.
func after(us float64) mono.Time { return start.Add(time.Duration(us * 1000)) }

// clean is the verdict on a packet that arrives once and whole.
func clean(at mono.Time) link.Verdict {
	return link.Verdict{DeliverAt: at, Corrupt: link.NoCorruption}
}

// A frame of 1500 bytes and 38 of Ethernet overhead takes 12304 bits: 1230.4
// us at 10 Mb/s.
func TestDeliveryTimes(t *testing.T) {
	l := link.New(link.Config{Rate: 10e6, Delay: 20 * time.Millisecond, Overhead: 38}, nil)
	require.Equal(t, clean(after(20_000+1230.4)), l.Offer(start, 1500, false))
	require.Equal(t, clean(after(20_000+2460.8)), l.Offer(start, 1500, false), "queued behind the first")
	require.Equal(t, clean(after(20_000+2460.8+62.4)), l.Offer(after(1000), 40, false), "78 bytes behind both")
	require.Equal(t, clean(after(20_000+5000+1230.4)), l.Offer(after(5000), 1500, false), "idle again")
}

func TestZeroConfigIsPerfect(t *testing.T) {
	l := link.New(link.Config{}, nil)
	for range 1000 {
		require.Equal(t, clean(start), l.Offer(start, 65535, true))
	}
	require.Zero(t, l.Backlog(start))
	require.True(t, l.Up())
}

// At 10 Gb/s a packet of 64 bytes takes 51.2 ns: a thousand take 51.2 us.
func TestRoundingDoesNotAddUp(t *testing.T) {
	l := link.New(link.Config{Rate: 10e9, QueueBytes: 1 << 20}, nil)
	var last link.Verdict
	for range 1000 {
		last = l.Offer(start, 64, false)
	}
	require.InDelta(t, float64(after(51.2)), float64(last.DeliverAt), 1)
}

// Ten packets of 1000 bytes fill a queue of 10 000; at 8 Mb/s one leaves each
// millisecond.
func TestQueueOverflow(t *testing.T) {
	l := link.New(link.Config{Rate: 8e6, QueueBytes: 10_000}, nil)
	count := func(now mono.Time, n int) (taken int) {
		for range n {
			switch v := l.Offer(now, 1000, false); v.Drop {
			case link.Delivered:
				taken++
			default:
				require.Equal(t, link.Verdict{Drop: link.DropQueue, Corrupt: link.NoCorruption}, v)
			}
		}
		return taken
	}
	require.Equal(t, 10, count(start, 25))
	require.Equal(t, 10_000, l.Backlog(start))
	require.Equal(t, 7_500, l.Backlog(after(2500)))
	require.Equal(t, 2, count(after(2500), 25), "two and a half have left")
	require.Zero(t, l.Backlog(after(12_000)))
	require.Equal(t, 10, count(after(12_000), 25))
}

// A transmitter that is idle takes a packet larger than the queue.
func TestQueueSmallerThanPacket(t *testing.T) {
	l := link.New(link.Config{Rate: 8e6, QueueBytes: 100}, nil)
	require.Equal(t, clean(after(1000)), l.Offer(start, 1000, false))
	require.Equal(t, link.DropQueue, l.Offer(after(500), 1000, false).Drop)
	require.Equal(t, clean(after(2000)), l.Offer(after(1000), 1000, false))
}

func TestDefaults(t *testing.T) {
	tests := []struct {
		why     string
		give    link.Config
		queue   int
		reorder time.Duration
	}{
		{"100 Mb/s times twice 20 ms", link.Config{Rate: 100e6, Delay: 20 * time.Millisecond}, 500_000, time.Millisecond},
		{"at least 64 KiB; four packets at 1 Mb/s", link.Config{Rate: 1e6, Delay: time.Millisecond}, 64 << 10, 48 * time.Millisecond},
		{"no limit of rate", link.Config{Delay: time.Second}, 64 << 10, time.Millisecond},
		{"at most the greatest queue", link.Config{Rate: 1e13, Delay: time.Hour}, 1 << 30, time.Millisecond},
		{"given", link.Config{QueueBytes: 1, ReorderBy: 1}, 1, 1},
	}
	for _, tt := range tests {
		got := link.New(tt.give, nil).Config()
		require.Equal(t, tt.queue, got.QueueBytes, tt.why)
		require.Equal(t, tt.reorder, got.ReorderBy, tt.why)
	}
}

func TestValidate(t *testing.T) {
	valid := []link.Config{
		{},
		{Rate: 1, Delay: time.Hour, Jitter: time.Hour, ReorderBy: time.Hour, QueueBytes: 1 << 30, Overhead: 1 << 16},
		{Rate: 1e13, Loss: 1, Reorder: 1, Duplicate: 1, Corrupt: 1},
	}
	for _, c := range valid {
		require.NoError(t, c.Validate())
	}
	nan, inf := math.NaN(), math.Inf(1)
	invalid := map[string][]link.Config{
		"Rate":       {{Rate: nan}, {Rate: inf}, {Rate: -1}, {Rate: 0.5}, {Rate: 1e14}},
		"Delay":      {{Delay: -1}, {Delay: time.Hour + 1}},
		"Jitter":     {{Jitter: -1}, {Jitter: math.MaxInt64}},
		"ReorderBy":  {{ReorderBy: -1}, {ReorderBy: time.Hour + 1}},
		"QueueBytes": {{QueueBytes: -1}, {QueueBytes: 1<<30 + 1}},
		"Overhead":   {{Overhead: -1}, {Overhead: 1<<16 + 1}},
		"Loss":       {{Loss: nan}, {Loss: -0.1}, {Loss: 1.1}},
		"Reorder":    {{Reorder: nan}, {Reorder: inf}},
		"Duplicate":  {{Duplicate: nan}, {Duplicate: -1}},
		"Corrupt":    {{Corrupt: nan}, {Corrupt: 2}},
	}
	for field, configs := range invalid {
		for _, c := range configs {
			require.ErrorContains(t, c.Validate(), "link: "+field+" ", "%+v", c)
		}
	}
}

func TestDown(t *testing.T) {
	l := link.New(link.Config{Rate: 8e6}, nil)
	l.Offer(start, 1000, false)
	l.SetUp(false)
	require.False(t, l.Up())
	require.Equal(t, link.Verdict{Drop: link.DropDown, Corrupt: link.NoCorruption}, l.Offer(start, 1000, false))
	l.SetUp(true)
	require.Equal(t, clean(after(2000)), l.Offer(start, 1000, false), "a dropped packet takes no time")
}

// Packets keep their order when a link gets faster.
func TestSetConfigKeepsOrder(t *testing.T) {
	l := link.New(link.Config{Rate: 8e6, Delay: 50 * time.Millisecond}, nil)
	require.Equal(t, clean(after(51_000)), l.Offer(start, 1000, false))
	l.SetConfig(link.Config{Rate: 80e6, Delay: 10 * time.Millisecond})
	require.Equal(t, clean(after(51_000)), l.Offer(after(1000), 1000, false), "not before the first")
	require.Equal(t, clean(after(70_100)), l.Offer(after(60_000), 1000, false), "rate and delay are new")
}

// Jitter is uniform between none and all, and keeps order.
func TestJitter(t *testing.T) {
	const n = 10_000
	l := link.New(link.Config{Delay: 10 * time.Millisecond, Jitter: 4 * time.Millisecond}, seeded(1))
	sum := time.Duration(0)
	for i := range n {
		// Far apart: no packet is held by the one before it.
		now := after(float64(i) * 5000)
		d := l.Offer(now, 100, false).DeliverAt.Sub(now)
		require.GreaterOrEqual(t, d, 10*time.Millisecond)
		require.LessOrEqual(t, d, 14*time.Millisecond)
		sum += d
	}
	// The mean of n uniform values: 5 standard deviations of 4 ms/sqrt(12n).
	require.InDelta(t, 12e6, float64(sum/n), 5*4e6/math.Sqrt(12*n))

	l = link.New(link.Config{Delay: 10 * time.Millisecond, Jitter: 4 * time.Millisecond}, seeded(2))
	last := mono.Time(0)
	for i := range n {
		at := l.Offer(after(float64(i)*10), 100, false).DeliverAt
		require.GreaterOrEqual(t, at, last)
		last = at
	}
}

// Held-back packets are overtaken by those behind them and by no others.
func TestReorder(t *testing.T) {
	const n, p = 10_000, 0.1
	l := link.New(link.Config{Rate: 12e6, Delay: 10 * time.Millisecond, Reorder: p, ReorderBy: 3500 * time.Microsecond}, seeded(3))
	last, held := mono.Time(0), 0
	for i := range n {
		now := after(float64(i) * 1000) // one packet of 1500 bytes a millisecond
		switch d := l.Offer(now, 1500, false).DeliverAt; d.Sub(now) {
		case 11 * time.Millisecond:
			require.Greater(t, d, last)
			last = d
		case 14500 * time.Microsecond:
			held++
		default:
			require.Fail(t, "neither on time nor held back", "%v", d.Sub(now))
		}
	}
	binomial(t, n, p, held)
}

// binomial fails unless hits of n trials of probability p lie within five
// standard deviations.
func binomial(t *testing.T, n int, p float64, hits int) {
	t.Helper()
	require.InDelta(t, float64(n)*p, float64(hits), 5*math.Sqrt(float64(n)*p*(1-p)))
}

func TestChances(t *testing.T) {
	const n, size = 20_000, 125
	l := link.New(link.Config{Loss: 0.05, Duplicate: 0.03, Corrupt: 0.02}, seeded(4))
	lost, twice, corrupt, bits := 0, 0, 0, 0.0
	for range n {
		v := l.Offer(start, size, false)
		if v.Drop != link.Delivered {
			require.Equal(t, link.Verdict{Drop: link.DropLoss, Corrupt: link.NoCorruption}, v)
			lost++
			continue
		}
		if v.Duplicate.Set() {
			require.Equal(t, v.DeliverAt, v.Duplicate)
			twice++
		}
		if v.Corrupt != link.NoCorruption {
			require.GreaterOrEqual(t, v.Corrupt, 0)
			require.Less(t, v.Corrupt, 8*size)
			bits += float64(v.Corrupt)
			corrupt++
		}
	}
	binomial(t, n, 0.05, lost)
	binomial(t, n-lost, 0.03, twice)
	binomial(t, n-lost, 0.02, corrupt)
	require.InDelta(t, 500, bits/float64(corrupt), 100, "any bit alike")
}

// A lost packet has taken its time on the link.
func TestLossTakesTime(t *testing.T) {
	l := link.New(link.Config{Rate: 8e6, Loss: 1}, seeded(5))
	require.Equal(t, link.DropLoss, l.Offer(start, 1000, false).Drop)
	l.SetConfig(link.Config{Rate: 8e6})
	require.Equal(t, clean(after(2000)), l.Offer(start, 1000, false))
}

func TestDeterministic(t *testing.T) {
	run := func(seed uint64) []link.Verdict {
		l := link.New(link.Config{
			Rate: 10e6, Delay: time.Millisecond, Jitter: time.Millisecond,
			Loss: 0.1, Reorder: 0.1, Duplicate: 0.1, Corrupt: 0.1,
		}, seeded(seed))
		var vs []link.Verdict
		for i := range 500 {
			vs = append(vs, l.Offer(after(float64(i)*700), 40+i, false))
		}
		return vs
	}
	require.Equal(t, run(7), run(7))
	require.NotEqual(t, run(7), run(8))
}

func busy() *link.Link {
	return link.New(link.Config{
		Rate: 100e6, Delay: time.Millisecond, Jitter: time.Millisecond,
		Loss: 0.01, Reorder: 0.01, Duplicate: 0.01, Corrupt: 0.01,
	}, seeded(9))
}

func TestOfferDoesNotAllocate(t *testing.T) {
	l, now := busy(), start
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		now = now.Add(100 * time.Microsecond)
		l.Offer(now, 1500, true)
	}))
}

func BenchmarkOffer(b *testing.B) {
	l, now := busy(), start
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(100 * time.Microsecond)
		l.Offer(now, 1500, true)
	}
}
