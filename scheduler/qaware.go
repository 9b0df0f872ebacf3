package scheduler

// ReasonQueue says that the local queue and the way behind it take the least
// time.
const ReasonQueue Reason = "least queue and delay"

// qaware sends where q/mu + d is least: the backlog of the local queue over
// the rate at which it drains, and the delay behind it (Shreedhar et al., IFIP
// Networking 2018). Without a queue it is minrtt-plain.
//
// Reconstruction from the abstract. The paper reads the queues of the
// machine's network devices. Here nothing waits in devices but what a subflow
// was given and its pacing holds back, which is q; mu is its pacing rate.
func qaware(v *View) Decision {
	set, d, done := v.forFresh()
	if done {
		return d
	}
	best, _ := v.least(v.Free(set), func(i int) float64 {
		s := &v.Subflows[i]
		cost := s.rtt().Seconds()
		if mu := s.pace(); s.Queued > 0 && mu > 0 {
			cost += float64(s.Queued) / mu
		}
		return cost
	})
	return Decision{Send: 1 << best, Reason: ReasonQueue}
}

func newQAware() Scheduler { return Func(qaware) }
