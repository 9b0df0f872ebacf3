package cc

import (
	"math"
	"time"
)

// Constants of RFC 9438, Section 4.1.1 and Section 4.3.
const (
	cubicC     = 0.4 // segments/s^3 (Section 5.1)
	cubicBeta  = 0.7 // multiplicative decrease (Section 4.6)
	cubicAlpha = 3 * (1 - cubicBeta) / (1 + cubicBeta)
)

// cubic is RFC 9438 with windows in bytes. The first slow start is HyStart++,
// which its Section 4.10 recommends, later ones are Reno's.
//
// Deviation: RFC 9438, Section 4.10, asks for slow start while "cwnd is no
// more than ssthresh"; here it ends when they are equal, which RFC 5681
// allows, or the first ACK after every reduction would be one of slow start.
type cubic struct {
	win   window
	start *hystart // nil before the first slow start has begun
	clock cubicClock
	curve cubicCurve
	undo  *cubicUndo // nil = there is nothing to take back
}

// cubicCurve is the growth function of one stage of congestion avoidance.
type cubicCurve struct {
	cwndPrior float64       // bytes; cwnd when ssthresh was last set
	wMax      float64       // bytes; 0 before the first congestion event
	wEst      float64       // bytes; what Reno would have
	k         float64       // seconds until the curve is at wMax
	epoch     time.Duration // of cubicClock, when the stage began
	started   bool          // the stage has begun: epoch, k and wEst hold
	flat      bool          // the stage begins on its plateau: K = 0, W_max = cwnd_epoch
}

// cubicUndo is the state before the last congestion event.
type cubicUndo struct {
	cwnd, ssthresh float64
	curve          cubicCurve
}

func newCubic(p Params) *cubic {
	c := makeCubic(p)
	return &c
}

func makeCubic(p Params) cubic { return cubic{win: newWindow(p), curve: cubicCurve{flat: true}} }

func newCubicGroup() Group {
	return uncoupled(func(p Params) Controller { return newCubic(p) })
}

func (c *cubic) State() State { return c.win.state() }

func (c *cubic) core() *window { return &c.win }

func (c *cubic) OnAck(s *Sample) {
	c.note(s)
	c.grow(s)
}

func (c *cubic) note(s *Sample) {
	c.clock.advance(s)
	c.win.observe(s)
}

func (c *cubic) grow(s *Sample) {
	switch {
	case !grows(s):
	case c.win.inSlowStart():
		c.slowStart().slowStart(&c.win, s)
	default:
		if !c.curve.started {
			c.startStage()
		}
		c.avoid(s)
	}
}

// startStage begins congestion avoidance at the window of now. It is put off
// until the window may grow, so recovery is not part of the stage.
func (c *cubic) startStage() {
	v := &c.curve
	v.started = true
	v.epoch = c.clock.now
	v.wEst = c.win.cwnd
	if v.wMax == 0 {
		// RFC 9438, Section 4.10: without any loss "CUBIC sets cwnd_prior =
		// cwnd and switches to congestion avoidance".
		v.cwndPrior = c.win.cwnd
	}
	if v.flat || v.wMax < c.win.cwnd {
		// RFC 9438, Section 4.8 and Section 4.10: "K is set to 0, and W_max
		// is set to the congestion window size at the beginning of the
		// current congestion avoidance stage". A window that the least
		// values kept above W_max has no concave part either.
		v.k, v.wMax = 0, c.win.cwnd
		return
	}
	// RFC 9438, Figure 2.
	v.k = math.Cbrt((v.wMax - c.win.cwnd) / (cubicC * c.win.mss))
}

// at is W_cubic(t) of RFC 9438, Figure 1, in bytes; t in seconds.
func (v *cubicCurve) at(t, mss float64) float64 {
	d := t - v.k
	return cubicC*mss*d*d*d + v.wMax
}

// avoid is one ACK of congestion avoidance (RFC 9438, Sections 4.2 to 4.5).
func (c *cubic) avoid(s *Sample) {
	v := &c.curve
	t := (c.clock.now - v.epoch).Seconds()
	share := min(float64(s.Acked)/c.win.cwnd, 1) // of a window that this ACK acknowledges

	// RFC 9438, Section 4.3: "Once W_est has grown to reach ... cwnd_prior --
	// the sender SHOULD set alpha_cubic to 1".
	alpha := cubicAlpha
	if v.wEst >= v.cwndPrior {
		alpha = 1
	}
	v.wEst += alpha * c.win.mss * share

	// "CUBIC checks whether W_cubic(t) is less than W_est. If so, CUBIC is in
	// the Reno-friendly region and cwnd SHOULD be set to W_est". W_est can be
	// below a window that the curve has grown; the window never falls here.
	if v.at(t, c.win.mss) < v.wEst {
		c.win.cwnd = max(c.win.cwnd, v.wEst)
		return
	}
	// RFC 9438, Section 4.2: the bounds "ensure that CUBIC's congestion
	// window increase rate is non-decreasing and is less than the increase
	// rate of slow start".
	target := min(max(v.at(t+s.SRTT.Seconds(), c.win.mss), c.win.cwnd), 1.5*c.win.cwnd)
	c.win.cwnd += (target - c.win.cwnd) * share
}

// grownByOthers begins a new stage, on its plateau: the curve of the old one
// says nothing of a window that something else has changed.
func (c *cubic) grownByOthers() { c.curve.started, c.curve.flat = false, true }

func (c *cubic) OnLoss(l Loss, s *Sample) { c.cut(l, s, c.keep(l)) }

// slowStart returns the state of the first slow start, to be changed.
func (c *cubic) slowStart() *hystart {
	if c.start == nil {
		c.start = &hystart{}
	}
	return c.start
}

func (c *cubic) keep(Loss) float64 { return cubicBeta }

func (c *cubic) cut(l Loss, s *Sample, keep float64) {
	c.win.setMSS(s)
	c.slowStart().stop()
	if c.win.repeated(l) {
		c.win.cwnd = c.win.mss
		return
	}
	c.undo = &cubicUndo{cwnd: c.win.cwnd, ssthresh: c.win.ssthresh, curve: c.curve}

	v := &c.curve
	v.started = false
	v.flat = l == LossTimeout
	v.cwndPrior = c.win.cwnd
	// RFC 9438, Section 4.7, fast convergence: a flow that could not regain
	// its old W_max gives up some of the difference.
	if c.win.cwnd < v.wMax {
		v.wMax = c.win.cwnd * (1 + cubicBeta) / 2
	} else {
		v.wMax = c.win.cwnd
	}
	// RFC 9438, Section 4.6: "ssthresh = flight_size * beta_cubic".
	c.win.reduce(l, c.win.reduced(l, s, keep))
}

// Undo restores the state before the last event. RFC 9438, Section 4.9.2:
// "CUBIC MAY restore the original values ... if the current cwnd is lower
// than cwnd_prior". The same is done for a spurious timeout (Section 4.9.1).
func (c *cubic) Undo() {
	if c.undo == nil || c.win.cwnd >= c.curve.cwndPrior {
		return
	}
	c.win.cwnd, c.win.ssthresh, c.curve = c.undo.cwnd, c.undo.ssthresh, c.undo.curve
	c.undo = nil
	c.win.timedOut = false
}

// cubicClock counts the time in which the window could have grown. RFC 9438,
// Section 4.2: "The elapsed time t in Figure 1 MUST NOT include periods during
// which cwnd has not been updated due to application-limited behavior".
type cubicClock struct {
	now     time.Duration // counted time
	last    time.Duration // Sample.Now of the last ACK; 0 before the first
	drained bool          // that ACK left nothing in flight
}

func (k *cubicClock) advance(s *Sample) {
	elapsed := s.Now - k.last
	switch {
	case k.last == 0 || !s.CwndLimited:
		// The window was not in use in the round trip that ends here.
		elapsed = 0
	case k.drained:
		// Nothing was sent until about one round trip ago.
		elapsed = min(elapsed, s.SRTT)
	}
	k.now += max(elapsed, 0)
	k.last, k.drained = s.Now, s.InFlight == 0
}
