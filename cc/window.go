package cc

import "math"

// window is what the loss-based controllers have in common: a congestion
// window in bytes, the threshold of slow start and the rules of RFC 5681 that
// hold whichever way the window grows in congestion avoidance.
type window struct {
	cwnd     float64 // bytes, at least one MSS
	ssthresh float64 // bytes, at least floors.loss once a signal came; +Inf before
	mss      float64 // bytes
	timedOut bool    // the last signal was a timeout and no ACK has come since

	floors
}

// floors are the least windows in segments.
type floors struct {
	mark float64 // that a mark leaves
	loss float64 // of the threshold, and so of the window that a loss leaves
}

func newWindow(p Params) window {
	mss := float64(max(p.MSS, 1))
	w := window{cwnd: p.InitialWindow, ssthresh: p.InitialSsthresh, mss: mss, floors: floors{mark: 1, loss: 2}}
	if w.cwnd <= 0 {
		// RFC 6928, Section 2: "min (10*MSS, max (2*MSS, 14600))".
		w.cwnd = min(10*mss, max(2*mss, 14600))
	}
	w.cwnd = max(w.cwnd, mss)
	if w.ssthresh <= 0 {
		w.ssthresh = math.Inf(1)
	}
	return w
}

func (w *window) state() State { return State{Cwnd: w.cwnd, Ssthresh: w.ssthresh} }

// observe takes from an ACK what does not depend on growth.
func (w *window) observe(s *Sample) {
	w.timedOut = false
	w.setMSS(s)
}

func (w *window) setMSS(s *Sample) {
	if s.MSS > 0 {
		w.mss = float64(s.MSS)
	}
}

// grows reports whether an ACK may open the window. A window that was not in
// full use has proved nothing (RFC 7661, Section 1), and recovery decides for
// itself what it sends.
func grows(s *Sample) bool { return s.Acked > 0 && s.CwndLimited && !s.InRecovery }

// inSlowStart reports whether the window is below the threshold. RFC 5681,
// Section 3.1: "When cwnd and ssthresh are equal, the sender may use either
// slow start or congestion avoidance": it uses the latter, so that the ACK
// after a reduction does not begin with a step of slow start.
func (w *window) inSlowStart() bool { return w.cwnd < w.ssthresh }

// slowStart opens the window by what an ACK acknowledged. RFC 5681,
// Section 3.1: "cwnd += min (N, SMSS)".
func (w *window) slowStart(acked int) { w.cwnd += min(float64(acked), w.mss) }

// reduced returns the threshold that a signal asks for, in bytes: beta times
// FlightSize.
//
// RFC 5681, Section 3.2, wants segments sent by limited transmit left out,
// and after a timeout much of what is outstanding was sent under a window
// that no longer exists. Both are what flight has beyond cwnd.
//
// A timeout within recovery keeps the threshold, which the episode has reduced
// already. FlightSize is then only an upper bound: most of it is what arrived
// behind the hole, in a long recovery several windows.
func (w *window) reduced(l Loss, s *Sample, beta float64) float64 {
	flight := float64(s.InFlight)
	if l == LossTimeout && s.InRecovery {
		return min(flight*beta, w.ssthresh)
	}
	return min(flight, w.cwnd) * beta
}

// repeated reports whether l is a further timeout of a segment that timed out
// before, and notes l. RFC 5681, Section 3.1: when "the given segment has
// already been retransmitted by way of the retransmission timer at least
// once, the value of ssthresh is held constant".
func (w *window) repeated(l Loss) bool {
	again := l == LossTimeout && w.timedOut
	w.timedOut = l == LossTimeout
	return again
}

// reduce sets window and threshold for a signal to target bytes, as far as
// the least windows allow.
func (w *window) reduce(l Loss, target float64) {
	// RFC 5681, Section 3.1: "ssthresh = max (FlightSize / 2, 2*SMSS)"; the
	// bound of 2*SMSS is common to Reno and CUBIC.
	w.ssthresh = max(target, w.floors.loss*w.mss)
	switch l {
	case LossTimeout:
		// RFC 5681, Section 3.1: "upon a timeout ... cwnd MUST be set to no
		// more than the loss window, LW, which equals 1 full-sized segment".
		w.cwnd = w.mss
	case LossECN:
		// RFC 9438, Section 4.6: "MUST continue to reduce cwnd in response to
		// congestion events detected by ECN-Echo ACKs until it reaches a
		// value of 1 SMSS".
		w.cwnd = max(target, w.floors.mark*w.mss)
	default:
		w.cwnd = w.ssthresh
	}
}
