package scheduler

import "time"

// capacity shares what is sent in proportion to what each subflow can carry
// without congestion: c = cwnd/SRTT * (1 - min(0.9, 10*loss)). The weights are
// renewed once in the least RTT of any subflow.
//
// Reconstruction: the scheduler that the authors of SCTC cite as their number
// 14 assigns packets in proportion to available capacity; the formula is ours.
type capacity struct {
	shares  shares
	weights PerSubflow[float64]
	renew   time.Duration
}

func newCapacity() Scheduler { return &capacity{} }

const (
	lossWeight  = 10
	mostPenalty = 0.9
)

func uncongested(s *Subflow) float64 {
	return s.Rate() * (1 - min(mostPenalty, lossWeight*s.LossRate))
}

func (c *capacity) Pick(v *View) Decision {
	set, d, done := v.forFresh()
	if done {
		return d
	}
	weights := c.weights.Sync(v)
	if v.Now >= c.renew {
		least := time.Duration(0)
		for i := range v.Subflows {
			s := &v.Subflows[i]
			weights[i] = uncongested(s)
			if s.MinRTT > 0 && (least == 0 || s.MinRTT < least) {
				least = s.MinRTT
			}
		}
		c.renew = v.Now + least
	}
	for i := range weights {
		if weights[i] == 0 { // it has come since
			weights[i] = uncongested(&v.Subflows[i])
		}
	}
	return c.shares.pick(v, v.Free(set), weights)
}
