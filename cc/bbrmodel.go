package cc

import (
	"math"
	"time"
)

// bbrLosses is what a round trip lost (Section 5.5.10).
type bbrLosses struct {
	inRound    bool  // something was lost since the last loss round began
	delivered  int64 // a loss round ends with data sent after so much
	roundStart bool  // this ACK ends one
	events     int   // ACKs of this round that reported losses, while in recovery
	recovering int   // rounds in fast recovery
}

// bbrFull looks for a plateau of the delivery rate (Section 5.3.1.2).
type bbrFull struct {
	bw      float64 // bytes/s, baseline
	count   int     // rounds with little growth
	now     bool    // the pipe is full
	reached bool    // it was once
}

func (f *bbrFull) reset() { f.bw, f.count, f.now = 0, 0, false }

// bbrMinRTT is the least RTT and when it is to be probed for (Section 5.3.4.3).
type bbrMinRTT struct {
	min        time.Duration // 0 = none yet
	minAt      time.Duration
	probeMin   time.Duration // least since the last probe; 0 = none yet
	probeAt    time.Duration
	expired    bool
	doneAt     time.Duration // end of ProbeRTT; 0 = what is in flight is not low yet
	roundEnded bool
}

// bbrExtra measures by how much ACKs come in lumps (Section 5.5.9).
type bbrExtra struct {
	since     time.Duration
	delivered float64 // bytes since
	max       [bbrExtraRounds]float64
	round     [bbrExtraRounds]int
}

// most returns the greatest lump of the last rounds, in bytes.
func (e *bbrExtra) most(round int, steady bool) float64 {
	over := 1
	if steady {
		over = bbrExtraRounds
	}
	most := 0.0
	for i, r := range e.round {
		if round-r < over {
			most = max(most, e.max[i])
		}
	}
	return most
}

// maxBW returns the bandwidth of the last two cycles.
func (b *bbr) maxBW() float64 { return max(b.model.max[0], b.model.max[1]) }

// limited reports whether a sample's rate is only a lower bound.
func (b *bbr) limited(s *Sample) bool {
	return s.AppLimited || b.rounds.total-int64(s.GotSince) < b.model.limitedUntil
}

// latest is UpdateLatestDeliverySignals of Section 5.5.10.3.
func (b *bbr) latest(s *Sample) {
	l, m := &b.loss, &b.model
	m.bwLatest = max(m.bwLatest, s.DeliveryRate)
	m.deliveredInFlight = max(m.deliveredInFlight, float64(s.GotSince))
	l.roundStart = b.rounds.total-int64(s.GotSince) >= l.delivered
	if l.roundStart {
		l.delivered = b.rounds.total
	}
	if s.Lost > 0 {
		if !l.inRound {
			l.delivered = b.rounds.total
		}
		l.inRound = true
		if s.InRecovery {
			l.events++
		}
	}
	if b.rounds.start && s.InRecovery {
		l.recovering++
	} else if !s.InRecovery {
		l.recovering = 0
	}
}

// congestion is UpdateCongestionSignals of the same.
func (b *bbr) congestion(s *Sample) {
	m := &b.model
	if r := s.DeliveryRate; r > 0 && (r >= b.maxBW() || !b.limited(s)) {
		m.max[0] = max(m.max[0], r)
	}
	if b.loss.roundStart {
		b.adaptLower()
		b.startupLoss(s)
		b.loss.inRound, b.loss.events = false, 0
	}
}

// adaptLower lets the short-term bounds follow a round trip with losses, unless
// the losses were risked on purpose.
func (b *bbr) adaptLower() {
	m := &b.model
	if !b.loss.inRound || b.state == bbrStartup || b.state == bbrRefill || b.state == bbrUp {
		return
	}
	if math.IsInf(m.bwShort, 1) {
		m.bwShort = b.maxBW()
	}
	if math.IsInf(m.inflightShort, 1) {
		m.inflightShort = max(b.cwnd, b.prior)
	}
	m.bwShort = max(b.ofAll(m.bwLatest, m.bwShort), bbrBeta*m.bwShort)
	m.inflightShort = max(b.ofAll(m.deliveredInFlight, m.inflightShort), bbrBeta*m.inflightShort)
}

// ofAll returns what of a bound was delivered. One that cruises at a part of its
// bandwidth, being coupled, sent no more than that part: what it did not send is
// not lost.
func (b *bbr) ofAll(delivered, bound float64) float64 {
	if b.cruise <= 0 || b.cruise >= 1 || b.state != bbrDown && b.state != bbrCruise {
		return delivered
	}
	return min(delivered/b.cruise, bound)
}

func (b *bbr) resetShortTerm() {
	b.model.bwShort, b.model.inflightShort = math.Inf(1), math.Inf(1)
}

func (b *bbr) resetCongestion() {
	b.loss.inRound, b.loss.events = false, 0
	b.model.bwLatest, b.model.deliveredInFlight = 0, 0
}

// tooHigh reports whether more was lost of a round trip than the queue's
// pressure is worth.
func tooHigh(s *Sample) bool { return float64(s.LostSince) > bbrLossThresh*float64(s.SentInFlight) }

// startupLoss ends Startup by losses (Section 5.3.1.3).
func (b *bbr) startupLoss(s *Sample) {
	l := &b.loss
	if b.state != bbrStartup || l.recovering < 1 || l.events < bbrStartupLost || !tooHigh(s) {
		return
	}
	b.undo.state, b.undo.left = bbrStartup, true
	b.full.reached = true
	b.model.inflightLong = max(b.bdp(b.maxBW(), 1), b.model.deliveredInFlight)
}

// aggregation is Section 5.5.9.
func (b *bbr) aggregation(s *Sample) {
	e := &b.extra
	if b.restart {
		e.since, e.delivered = s.Now-s.RTT, 0
	}
	expected := b.model.bw * (s.Now - e.since).Seconds()
	if e.delivered <= expected {
		e.since, e.delivered, expected = s.Now, 0, 0
	}
	e.delivered += float64(s.Delivered)
	extra := min(e.delivered-expected, b.cwnd)
	i := b.rounds.count % bbrExtraRounds
	if e.round[i] != b.rounds.count {
		e.round[i], e.max[i] = b.rounds.count, 0
	}
	e.max[i] = max(e.max[i], extra)
}

// checkFull is Section 5.3.1.2.
func (b *bbr) checkFull(s *Sample) {
	f := &b.full
	if f.now || !b.rounds.start || b.limited(s) || s.DeliveryRate == 0 {
		return
	}
	if s.DeliveryRate >= f.bw*bbrFullGrowth {
		f.reset()
		f.bw = s.DeliveryRate
		return
	}
	f.count++
	if f.count >= bbrFullRounds {
		f.now, f.reached = true, true
	}
}

// updateMinRTT is UpdateMinRTT of Section 5.3.4.3.
func (b *bbr) updateMinRTT(s *Sample) {
	r := &b.rtt
	r.expired = r.probeMin > 0 && s.Now > r.probeAt+bbrProbeRTT
	if s.RTT > 0 && (r.probeMin == 0 || s.RTT < r.probeMin || r.expired) {
		r.probeMin, r.probeAt = s.RTT, s.Now
	}
	if r.probeMin > 0 && (r.min == 0 || r.probeMin < r.min || s.Now > r.minAt+bbrMinRTTLife) {
		r.min, r.minAt = r.probeMin, r.probeAt
	}
}
