package scheduler

// ReasonTurn says that it was the subflow's turn.
const ReasonTurn Reason = "turn"

// roundRobin gives each subflow in turn a number of segments, skipping those
// without room (the kernel's mptcp_rr with cwnd_limited set). Shares are equal
// only while no window binds; otherwise they follow the rates of the
// subflows.
//
// A turn that meets less room than its quota ends there: what is left of it
// is not owed. It waits as LeastRTT does.
type roundRobin struct {
	quota int // segments a turn, at least 1
	last  int // ID of the subflow that had the last turn; -1 before the first
}

// RoundRobin makes schedulers that give each subflow in turn the number of
// segments, at least one. The name "roundrobin" is that with one.
func RoundRobin(segments int) Factory {
	return func() Scheduler { return &roundRobin{quota: max(segments, 1), last: -1} }
}

func (r *roundRobin) Pick(v *View) Decision {
	if v.Ask == Spare {
		return wait(ReasonNoNeed)
	}
	set, why := v.Eligible()
	if set == 0 {
		return wait(why)
	}
	first, next := -1, -1 // with room: of all, and of those after the last turn
	for i := range v.Subflows {
		if set>>i&1 == 0 || v.Subflows[i].Room <= 0 {
			continue
		}
		if first < 0 {
			first = i
		}
		if v.Subflows[i].ID > r.last {
			next = i
			break
		}
	}
	if next < 0 {
		next = first
	}
	if next < 0 {
		return wait(ReasonNoRoom)
	}
	if why == "" {
		why = ReasonTurn
	}
	s := &v.Subflows[next]
	r.last = s.ID
	return Decision{Send: 1 << next, Bytes: min(r.quota*max(s.MSS, 1), s.Room), Reason: why}
}
