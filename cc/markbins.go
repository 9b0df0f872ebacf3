package cc

import (
	"math"
	"time"
)

// The detector by marks, a design of our own: where two subflows share a queue
// that marks, their marked shares rise and fall together from round trip to
// round trip. It decides within 32 round trips, and only where there are marks.
const (
	markBins     = 20   // shares that are correlated
	markEvery    = 4    // bins between verdicts
	markInRow    = 3    // verdicts of one kind in a row that count
	markCorr     = 0.8  // Pearson's correlation beyond which bins agree
	markLeast    = 0.05 // marked share below which a subflow tells nothing
	markBinFloor = time.Millisecond / 10
)

// markFlow keeps the marked shares of one subflow.
type markFlow struct {
	bins          []float64 // ring of markBins; nil while nothing was ever marked
	marked, acked float64   // bytes of the present bin
}

// observe takes an ACK.
func (f *markFlow) observe(s *Sample) {
	f.acked += float64(s.Delivered)
	f.marked += float64(s.Marked)
}

// end ends bin n.
func (f *markFlow) end(n int) {
	share := 0.0
	if f.acked > 0 {
		share = f.marked / f.acked
	}
	if f.bins == nil && share > 0 {
		f.bins = make([]float64, markBins)
	}
	if f.bins != nil {
		f.bins[n%markBins] = share
	}
	f.marked, f.acked = 0, 0
}

// mean returns the mean of the shares.
func (f *markFlow) mean() float64 {
	sum := 0.0
	for _, b := range f.bins {
		sum += b
	}
	return sum / markBins
}

// agrees reports whether the bins of two subflows rise and fall together.
func (f *markFlow) agrees(o *markFlow) bool {
	if f.mean() <= markLeast || o.mean() <= markLeast {
		return false
	}
	return correlation(markBins, func(i int) (float64, float64) { return f.bins[i], o.bins[i] }) > markCorr
}

// correlation returns Pearson's correlation of n pairs; 0 if one side is
// constant.
func correlation(n int, at func(int) (float64, float64)) float64 {
	ma, mb := 0.0, 0.0
	for i := range n {
		a, b := at(i)
		ma += a / float64(n)
		mb += b / float64(n)
	}
	cov, va, vb := 0.0, 0.0, 0.0
	for i := range n {
		a, b := at(i)
		cov += (a - ma) * (b - mb)
		va += (a - ma) * (a - ma)
		vb += (b - mb) * (b - mb)
	}
	if va == 0 || vb == 0 {
		return 0
	}
	return cov / math.Sqrt(va*vb)
}
