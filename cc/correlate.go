package cc

import (
	"math"
	"time"
)

// Two subflows that share a queue see the same delays, and the same marks
// where it marks, from round trip to round trip. So what each measures in bins
// of the longest round trip is correlated: the least delay, as ACKs that were
// delayed add to the others, and the marked share. That is a design of our own.
//
// Marks tell within 32 round trips, if there are some; delays, which are known
// to a millisecond only, take longer. Two queues with nothing but one subflow
// each could not be told from one if they are alike and the windows go in step:
// see detecting.OnLoss.
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

// Correlations of delays beyond which two flows share a queue: if RFC 8382
// groups them, and if it does not. In our simulations those of one queue are
// between 0.45 and 0.98, nearly always, and those of two that others use too
// between -0.2 and 0.31.
const (
	delayGrouped = 0.4
	delayAlone   = 0.5
)

// binned is a sum of n values.
type binned struct{ sum, n float64 }

func (b *binned) add(sum, n float64) { b.sum, b.n = b.sum+sum, b.n+n }

// least keeps the least of the values instead.
func (b *binned) least(v float64) {
	if b.n == 0 || v < b.sum {
		b.sum = v
	}
	b.n = 1
}

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
	if group >= 0 && group == other {
		return m.correlation() > delayGrouped
	}
	return m.correlation() > delayAlone
}

// marked reports whether the marked shares of two flows rise and fall
// together. The correlation of n pairs of strangers has a standard deviation of
// 1/sqrt(n).
func (m *moments) marked() bool {
	return min(m.a, m.b) > markLeast && m.correlation() > markSigma/math.Sqrt(m.n)
}
