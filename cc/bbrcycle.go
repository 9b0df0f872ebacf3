package cc

import (
	"math"
	"time"
)

// bbrAcks says what the ACKs that come now tell of a probe for bandwidth.
type bbrAcks uint8

const (
	bbrAcksPlain     bbrAcks = iota
	bbrAcksRefilling         // of data sent before the probe
	bbrAcksStarting          // the probe's data is on its way
	bbrAcksFeedback          // of the probe's data
	bbrAcksStopping          // the last of them
)

// bbrCycle is the state of the cycle of ProbeBW (Section 5.3.3).
type bbrCycle struct {
	acks       bbrAcks
	at         time.Duration // when the cycle began
	wait       time.Duration // until the next probe at most
	rounds     int           // since the last probe
	drainRound int           // when Drain began
	probing    bool          // samples are of a probe, and losses not judged yet
	tooHigh    bool          // the last probe lost too much
	cautious   bool          // the last probe ended early for that
	upRounds   int
	upAcked    float64 // bytes
	perInc     float64 // bytes acknowledged for a segment of growth; +Inf = none
}

// checkStartup is CheckStartupDone of Section 5.3.1.1.
func (b *bbr) checkStartup() {
	if b.state == bbrStartup && b.full.reached {
		b.state = bbrDrain
		b.cycle.drainRound = b.rounds.count
	}
}

// checkDrain is Section 5.3.2.
func (b *bbr) checkDrain(s *Sample) {
	if b.state == bbrDrain &&
		(float64(s.InFlight) <= b.inflight(b.model.bw) || b.rounds.count > b.cycle.drainRound+bbrDrainRounds) {
		b.startDown(s)
	}
}

// startDown begins a cycle, which sets the clock of the next probe: after 2 to
// 3 s, and no later than Reno would be back at its window.
func (b *bbr) startDown(s *Sample) {
	c := &b.cycle
	b.resetCongestion()
	c.perInc = math.Inf(1)
	chance := mix(uint64(s.Now) ^ uint64(b.rounds.total)<<20)
	c.rounds = int(chance & 1)
	c.wait = 2*time.Second + time.Duration(chance>>1%uint64(time.Second))
	c.at = s.Now
	c.acks = bbrAcksStopping
	b.rounds.begin()
	b.state = bbrDown
}

// mix spreads the bits of x (the finalizer of SplitMix64).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func (b *bbr) startRefill() {
	c := &b.cycle
	b.resetShortTerm()
	c.upRounds, c.upAcked, c.cautious = 0, 0, false
	c.acks = bbrAcksRefilling
	b.rounds.begin()
	b.state = bbrRefill
}

func (b *bbr) startUp(s *Sample) {
	c := &b.cycle
	c.acks, c.probing = bbrAcksStarting, true
	b.rounds.begin()
	b.full.reset()
	b.full.bw = s.DeliveryRate
	b.state = bbrUp
	b.raiseSlope()
}

// raiseSlope doubles the growth of the long-term bound.
func (b *bbr) raiseSlope() {
	c := &b.cycle
	growth := float64(uint64(1) << c.upRounds)
	c.upRounds = min(c.upRounds+1, 30)
	c.perInc = max(b.cwnd/growth, b.mss)
}

// advance is UpdateProbeBWCyclePhase of Section 5.3.3.9.
func (b *bbr) advance(s *Sample) {
	c := &b.cycle
	if b.rounds.start {
		c.rounds++
	}
	if !b.full.reached || b.adaptLong(s) {
		return
	}
	switch b.state {
	case bbrDown:
		if !b.timeToProbe(s) && float64(s.InFlight) <= min(b.headroom(), b.inflight(b.maxBW())) {
			b.state = bbrCruise
		}
	case bbrCruise:
		b.timeToProbe(s)
	case bbrRefill:
		if b.rounds.start {
			b.startUp(s)
		}
	case bbrUp:
		if b.timeToGoDown(s) {
			c.tooHigh = false
			b.startDown(s)
		}
	}
}

// timeToProbe begins a probe when it is time and reports whether it did.
func (b *bbr) timeToProbe(s *Sample) bool {
	c := &b.cycle
	reno := int(min(b.bdp(b.model.bw, 1), b.cwnd) / b.mss)
	late := time.Duration(b.turn.late)
	if b.turn.taken || s.Now <= c.at+c.wait+late*b.rtt.min && c.rounds < min(reno, bbrRenoRounds)+b.turn.late {
		return false
	}
	b.startRefill()
	return true
}

// timeToGoDown reports whether a probe has found what there is.
func (b *bbr) timeToGoDown(s *Sample) bool {
	c, long := &b.cycle, b.model.inflightLong
	if c.tooHigh && float64(s.InFlight) >= long {
		c.cautious = true
		return true
	}
	if s.CwndLimited && b.cwnd >= long {
		b.full.reset()
		b.full.bw = s.DeliveryRate
		return false
	}
	return b.full.now
}

// adaptLong is AdaptLongTermModel of Section 5.3.3.9, preceded by what Section
// 5.5.10.2 does for a lost packet. It reports whether it changed the state.
func (b *bbr) adaptLong(s *Sample) bool {
	c := &b.cycle
	if c.probing && s.Lost > 0 && tooHigh(s) {
		return b.lostTooMuch(s)
	}
	if c.acks == bbrAcksStarting && b.rounds.start {
		c.acks = bbrAcksFeedback
	}
	if c.acks == bbrAcksStopping && b.rounds.start {
		c.probing, c.acks = false, bbrAcksPlain
		if b.state.probesBW() && !b.limited(s) {
			b.model.max[1], b.model.max[0] = b.model.max[0], 0
		}
		if b.state.probesBW() && c.cautious && !c.tooHigh {
			b.startRefill()
			return true
		}
	}
	long := &b.model.inflightLong
	if tooHigh(s) || math.IsInf(*long, 1) {
		return false
	}
	*long = max(*long, float64(s.SentInFlight))
	if b.state == bbrUp {
		b.raiseLong(s)
	}
	return false
}

// raiseLong is ProbeInflightLongtermUpward.
func (b *bbr) raiseLong(s *Sample) {
	c, long := &b.cycle, &b.model.inflightLong
	if !s.CwndLimited || b.cwnd < *long {
		return
	}
	c.upAcked += float64(s.Delivered)
	if steps := math.Floor(c.upAcked / c.perInc); steps > 0 {
		c.upAcked -= steps * c.perInc
		*long += steps * b.mss
	}
	if b.rounds.start {
		b.raiseSlope()
	}
}

// lostTooMuch is HandleInflightTooHigh of Section 5.5.10.2. It reports whether
// the probe ends.
func (b *bbr) lostTooMuch(s *Sample) bool {
	c := &b.cycle
	c.tooHigh, c.probing = true, false
	if !b.limited(s) {
		target := min(b.bdp(b.model.bw, 1), max(b.cwnd, b.prior))
		b.model.inflightLong = max(float64(s.SentInFlight), target*bbrBeta)
	}
	if b.state != bbrUp {
		return false
	}
	b.undo.state, b.undo.left = bbrUp, true
	b.startDown(s)
	return true
}

// checkProbeRTT is CheckProbeRTT of Section 5.3.4.3.
func (b *bbr) checkProbeRTT(s *Sample) {
	r := &b.rtt
	if b.state != bbrInProbeRTT && r.expired && !b.restart {
		b.saveCwnd()
		b.state = bbrInProbeRTT
		r.doneAt = 0
		b.cycle.acks = bbrAcksStopping
		b.rounds.begin()
	}
	if b.state != bbrInProbeRTT {
		return
	}
	b.model.limitedUntil = b.rounds.total + int64(s.InFlight)
	switch {
	case r.doneAt == 0:
		if float64(s.InFlight) <= b.probeRTTCwnd() {
			r.doneAt = s.Now + bbrProbeRTTTime
			r.roundEnded = false
			b.rounds.begin()
		}
	case b.rounds.start || r.roundEnded:
		r.roundEnded = true
		if s.Now > r.doneAt {
			r.probeAt = s.Now
			b.cwnd = max(b.cwnd, b.prior)
			b.leaveProbeRTT(s)
		}
	}
}

// leaveProbeRTT is Section 5.3.4.4.
func (b *bbr) leaveProbeRTT(s *Sample) {
	b.resetShortTerm()
	if !b.full.reached {
		b.state = bbrStartup
		return
	}
	b.startDown(s)
	b.state = bbrCruise
}
