package scheduler

import (
	"math"
	"math/bits"
)

// ReasonShare says that the subflow was furthest behind its share.
const ReasonShare Reason = "share"

// shares realises weights: of subflows that want their turn, the one whose
// credit is greatest has it. Each segment gives every one of them credit in
// proportion to its weight and takes its length from the one that sends it
// (smooth weighted round robin, as in nginx, with bytes for requests). A full
// subflow gets no credit and loses none.
type shares struct{ credit PerSubflow[float64] }

// pick returns the subflow of set, which is not empty, whose turn it is.
// Weights that are not positive leave their subflow out unless all are such.
func (s *shares) pick(v *View, set uint64, weights []float64) Decision {
	credit := s.credit.Sync(v)
	total := 0.0
	for rest := set; rest != 0; rest &= rest - 1 {
		if w := weights[bits.TrailingZeros64(rest)]; w > 0 {
			total += w
		}
	}
	if !(total > 0) || math.IsInf(total, 1) {
		return v.leastRTT(set, "")
	}
	best, most := -1, 0.0
	for rest := set; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros64(rest)
		if w := weights[i]; w > 0 {
			if c := credit[i] + w/total*float64(v.Subflows[i].segment()); best < 0 || c > most {
				best, most = i, c
			}
		}
	}
	d := v.one(best, ReasonShare)
	for rest := set; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros64(rest)
		if w := weights[i]; w > 0 {
			credit[i] += w / total * float64(d.Bytes)
		}
	}
	credit[best] -= float64(d.Bytes)
	return d
}

// weighted shares what is sent among the subflows with room by weight.
type weighted struct {
	weight  func(*Subflow) float64
	weights PerSubflow[float64]
	shares  shares
}

// Weighted makes schedulers that share the bytes sent among the subflows that
// have room, segment by segment, in proportion to their weights. The name
// "weighted" is that with equal weights: round robin by bytes, whatever the
// sizes of segments. The function must depend on the subflow only; one whose
// weight is not positive is spared while another has room.
func Weighted(weight func(s *Subflow) float64) Factory {
	return func() Scheduler { return &weighted{weight: weight} }
}

func equalWeights(*Subflow) float64 { return 1 }

func (w *weighted) Pick(v *View) Decision {
	set, d, done := v.forFresh()
	if done {
		return d
	}
	weights := w.weights.Sync(v)
	for i := range weights {
		weights[i] = w.weight(&v.Subflows[i])
	}
	return w.shares.pick(v, v.Free(set), weights)
}
