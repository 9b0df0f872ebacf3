package cc

// reno is NewReno's window: RFC 5681 with the initial window of RFC 6928.
// How much is sent during recovery (RFC 6582, RFC 9937) is the subflow's
// business; here the window falls to its final value at once.
type reno struct {
	win     window
	counted float64 // bytes acknowledged towards the next step
	undo    renoUndo
}

// renoUndo is the state before the last signal.
type renoUndo struct {
	valid          bool
	cwnd, ssthresh float64
}

func newReno(p Params) *reno { return &reno{win: newWindow(p)} }

func newRenoGroup() Group {
	return uncoupled(func(p Params) Controller { return newReno(p) })
}

func (r *reno) State() State { return r.win.state() }

func (r *reno) core() *window { return &r.win }

func (r *reno) OnAck(s *Sample) {
	r.note(s)
	r.grow(s)
}

func (r *reno) note(s *Sample) { r.win.observe(s) }

func (r *reno) grow(s *Sample) {
	switch {
	case !grows(s):
	case r.win.inSlowStart():
		r.win.slowStart(s.Acked)
	default:
		r.avoid(s.Acked)
	}
}

// avoid is congestion avoidance by counting bytes. RFC 5681, Section 3.1:
// "When the number of bytes acknowledged reaches cwnd, then cwnd can be
// incremented by up to SMSS bytes"; "cwnd MUST NOT be increased by more than
// SMSS bytes per RTT".
func (r *reno) avoid(acked int) {
	r.counted += min(float64(acked), r.win.cwnd)
	if r.counted >= r.win.cwnd {
		r.counted -= r.win.cwnd
		r.win.cwnd += r.win.mss
	}
}

func (r *reno) OnLoss(l Loss, s *Sample) { r.cut(l, s, r.keep(l)) }

func (r *reno) keep(Loss) float64 { return 0.5 }

func (r *reno) cut(l Loss, s *Sample, keep float64) {
	if r.begins(l, s) {
		r.win.reduce(l, r.win.reduced(l, s, keep))
	}
}

// begins notes a signal and reports whether it asks for a reduction that has
// not been made yet.
func (r *reno) begins(l Loss, s *Sample) bool {
	r.win.setMSS(s)
	r.counted = 0
	if r.win.repeated(l) {
		r.win.cwnd = r.win.mss
		return false
	}
	r.undo = renoUndo{valid: true, cwnd: r.win.cwnd, ssthresh: r.win.ssthresh}
	return true
}

// Undo restores what the last signal took, unless the window has outgrown it
// since (RFC 4015, Section 3.2, whose burst limit the subflow keeps).
func (r *reno) Undo() {
	if !r.undo.valid {
		return
	}
	r.win.cwnd = max(r.win.cwnd, r.undo.cwnd)
	r.win.ssthresh = r.undo.ssthresh
	r.undo.valid = false
	r.win.timedOut = false
}
