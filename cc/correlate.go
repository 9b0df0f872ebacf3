package cc

import (
	"math"
	"time"
)

// Two subflows that share a queue see the same delays, and the same marks
// where it marks, from round trip to round trip. So what each measures is
// averaged over bins of the longest round trip, and correlated. That is a
// design of our own.
//
// Marks tell within 32 round trips, if there are some; delays, which are known
// to a millisecond only, take longer.
const (
	delayBinFloor = 50 * time.Millisecond
	delayMemory   = 100   // bins
	delayLeast    = .0005 // standard deviation in seconds: below it is the clock's grain and drift

	markBinFloor = time.Millisecond / 10
	markMemory   = 64   // bins
	markFirst    = 20   // bins before the first verdict
	markEvery    = 4    // bins between verdicts
	markInRow    = 3    // verdicts of one kind in a row that count
	markLeast    = 0.05 // marked share below which a subflow tells nothing
	markSigma    = 3.6  // standard deviations of the correlation of strangers
)

// Correlations of delays beyond which two flows share a queue: whatever else is
// known, if both traverse a bottleneck, and if RFC 8382 groups them.
const (
	delayAlone     = 0.7
	delayCongested = 0.5
	delayGrouped   = 0.4
)

// binned is a sum of n values.
type binned struct{ sum, n float64 }

func (b *binned) add(sum, n float64) { b.sum, b.n = b.sum+sum, b.n+n }

func (b *binned) mean() float64 { return b.sum / b.n }

// moments are means, variances and the covariance of pairs, in which the
// weight of old ones fades.
type moments struct {
	n          float64 // pairs, up to twice the memory, which they are worth then
	a, b       float64 // means
	aa, bb, ab float64
}

// add adds a pair. Memory is the reciprocal of the weight of a new one, which
// is more at first.
func (m *moments) add(a, b, memory float64) {
	w := 1 / min(m.n+1, memory)
	m.n = min(m.n+1, 2*memory)
	da, db := a-m.a, b-m.b
	m.a += w * da
	m.b += w * db
	m.aa = (1 - w) * (m.aa + w*da*da)
	m.bb = (1 - w) * (m.bb + w*db*db)
	m.ab = (1 - w) * (m.ab + w*da*db)
}

// correlation returns Pearson's; 0 if one side is constant.
func (m *moments) correlation() float64 {
	if m.aa <= 0 || m.bb <= 0 {
		return 0
	}
	return m.ab / math.Sqrt(m.aa*m.bb)
}

// together reports whether two flows are held to share a bottleneck by their
// delays, given the groups that they are in by RFC 8382, -1 being none.
func (m *moments) together(group, other int) bool {
	if min(m.aa, m.bb) < delayLeast*delayLeast {
		return false
	}
	r := m.correlation()
	switch {
	case group < 0 || other < 0:
		return r > delayAlone
	case group != other:
		return r > delayCongested
	}
	return r > delayGrouped
}

// marked reports whether the marked shares of two flows rise and fall
// together. The correlation of n pairs of strangers has a standard deviation of
// 1/sqrt(n).
func (m *moments) marked() bool {
	return min(m.a, m.b) > markLeast && m.correlation() > markSigma/math.Sqrt(m.n)
}
