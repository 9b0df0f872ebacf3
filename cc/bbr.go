package cc

import (
	"math"
	"time"
)

// Constants of draft-ietf-ccwg-bbr-06, Section 2 unless said otherwise.
const (
	bbrStartupGain  = 2.77
	bbrDrainGain    = 0.5
	bbrCwndGain     = 2.0
	bbrUpCwndGain   = 2.25
	bbrUpGain       = 1.25
	bbrDownGain     = 0.90
	bbrMargin       = 0.99 // of the bandwidth, paced at
	bbrLossThresh   = 0.02 // of the bytes of a round trip
	bbrBeta         = 0.7
	bbrHeadroom     = 0.15
	bbrMinPipe      = 4    // segments
	bbrFullGrowth   = 1.25 // less growth in three rounds means a full pipe
	bbrFullRounds   = 3
	bbrStartupLost  = 6 // losses in a round that end Startup
	bbrDrainRounds  = 3
	bbrRenoRounds   = 63
	bbrExtraRounds  = 10 // over which aggregation is remembered
	bbrMinRTTLife   = 10 * time.Second
	bbrProbeRTT     = 5 * time.Second
	bbrProbeRTTGain = 0.5
	bbrProbeRTTTime = 200 * time.Millisecond
	bbrQuantumTime  = time.Millisecond // of sending, that leave at once
	bbrQuantumMost  = 64 << 10         // bytes
)

// bbrState is a state of the state machine (Section 5.3).
type bbrState uint8

const (
	bbrStartup bbrState = iota
	bbrDrain
	bbrDown
	bbrCruise
	bbrRefill
	bbrUp
	bbrInProbeRTT
)

func (s bbrState) probesBW() bool { return s >= bbrDown && s <= bbrUp }

// bbr is BBR version 3, as draft-ietf-ccwg-bbr-06 has it: pacing at the
// delivery rate measured, and bounds for what is in flight that are learnt
// from it, from the least RTT and from losses.
//
// Deviation: whether losses are too many is judged for each ACK by the latest
// data it delivered, not for each lost packet, and losses in Startup count by
// ACKs that report some, not by ranges. Deviation: the draft spreads probes by
// random numbers; here they come of the bytes delivered and the time, which
// differ from flow to flow.
type bbr struct {
	mss     float64 // bytes
	initial float64 // bytes, initial window
	cwnd    float64 // bytes
	prior   float64 // bytes, the last good window
	pacing  float64 // bytes/s; 0 before the first RTT
	state   bbrState
	cruise  float64 // pacing gain of the state bbrCruise, and part of bbrDown's; 1 unless coupled
	turn    bbrTurn // zero unless coupled

	rounds  bbrRounds
	model   bbrModel
	loss    bbrLosses
	full    bbrFull
	cycle   bbrCycle
	rtt     bbrMinRTT
	extra   bbrExtra
	undo    bbrUndo
	drained bool // the last ACK left nothing in flight
	restart bool // the data now acknowledged was sent after idleness
	fast    bool // in fast recovery
}

// bbrTurn is what those that take turns at probing do to one of them.
type bbrTurn struct {
	taken bool // another one probes
	late  int  // round trips to be waited longer, for others whose turn it is first
}

// bbrRounds counts round trips (Section 5.5.1).
type bbrRounds struct {
	total int64 // bytes delivered
	next  int64 // the next round begins with data sent after so much
	count int
	start bool // this ACK begins one
}

// bbrModel is what is believed of the path (Section 5.5).
type bbrModel struct {
	bw                float64    // bytes/s, in force
	max               [2]float64 // bytes/s, greatest of the present cycle and of the one before
	bwShort           float64    // bytes/s; +Inf = no bound
	inflightShort     float64    // bytes; +Inf = no bound
	inflightLong      float64    // bytes; +Inf = no bound
	limitedUntil      int64      // samples of data sent before so much was delivered are bounds only
	deliveredInFlight float64    // bytes, greatest of this round delivered within an RTT
	bwLatest          float64    // bytes/s, greatest of this round
}

// bbrUndo is what a spurious recovery took.
type bbrUndo struct {
	valid                      bool
	state                      bbrState // left for the losses; else the present one
	left                       bool
	bwShort, inflShort, inflLg float64
}

func newBBR(p Params) *bbr {
	w := newWindow(p)
	b := &bbr{mss: w.mss, initial: w.cwnd, cwnd: w.cwnd, cruise: 1}
	b.model.inflightLong = math.Inf(1)
	b.cycle.perInc = math.Inf(1)
	b.resetShortTerm()
	return b
}

func newBBRGroup() Group {
	return uncoupled(func(p Params) Controller { return newBBR(p) })
}

func (b *bbr) State() State {
	return State{Cwnd: b.cwnd, Ssthresh: math.Inf(1), PacingRate: b.pacing}
}

// OnAck is Section 5.2.3.
func (b *bbr) OnAck(s *Sample) {
	if s.MSS > 0 {
		b.mss = float64(s.MSS)
	}
	b.restart = b.drained
	if b.fast && !s.InRecovery {
		b.cwnd = max(b.cwnd, b.prior)
	}
	b.fast = s.InRecovery
	b.rounds.follow(s)

	b.latest(s)
	b.congestion(s)
	b.aggregation(s)
	b.checkFull(s)
	b.checkStartup()
	b.checkDrain(s)
	b.advance(s)
	b.updateMinRTT(s)
	b.checkProbeRTT(s)
	if b.loss.roundStart {
		b.model.bwLatest, b.model.deliveredInFlight = s.DeliveryRate, float64(s.GotSince)
	}
	b.model.bw = min(b.maxBW(), b.model.bwShort)

	b.setPacing(s)
	b.setCwnd(s)
	b.drained = s.InFlight == 0
}

// follow counts an ACK.
func (r *bbrRounds) follow(s *Sample) {
	r.total += int64(s.Delivered)
	r.start = r.total-int64(s.GotSince) >= r.next
	if r.start {
		r.begin()
		r.count++
	}
}

// begin lets a round begin with what is sent from now on.
func (r *bbrRounds) begin() { r.next = r.total }

// gains are the pacing gain and the window gain of each state (Section 5.6.1).
func (b *bbr) gains() (pacing, cwnd float64) {
	switch b.state {
	case bbrStartup:
		return bbrStartupGain, bbrCwndGain
	case bbrDrain:
		return bbrDrainGain, bbrCwndGain
	case bbrDown:
		return bbrDownGain * b.cruise, bbrCwndGain
	case bbrUp:
		return bbrUpGain, bbrUpCwndGain
	case bbrCruise:
		return b.cruise, bbrCwndGain
	case bbrInProbeRTT:
		return 1, bbrProbeRTTGain
	}
	return 1, bbrCwndGain
}

// setPacing is Section 5.6.2.
func (b *bbr) setPacing(s *Sample) {
	if b.pacing == 0 && s.SRTT > 0 {
		b.pacing = bbrStartupGain * b.initial / s.SRTT.Seconds()
	}
	gain, _ := b.gains()
	if b.restart && b.state.probesBW() {
		gain = 1
	}
	rate := gain * b.model.bw * bbrMargin
	if b.cruise < 1 && (b.state == bbrDown || b.state == bbrCruise) && b.rtt.min > 0 {
		rate = max(rate, bbrMinPipe*b.mss/b.rtt.min.Seconds())
	}
	if b.full.reached && rate > 0 || rate > b.pacing {
		b.pacing = rate
	}
}

// bdp returns gain times the bandwidth-delay product, in bytes.
func (b *bbr) bdp(bw, gain float64) float64 {
	if b.rtt.min == 0 {
		return b.initial
	}
	return gain * bw * b.rtt.min.Seconds()
}

// budget widens a bound so that what leaves at once fits in.
func (b *bbr) budget(bound float64) float64 {
	quantum := max(min(b.pacing*bbrQuantumTime.Seconds(), bbrQuantumMost), 2*b.mss)
	bound = max(bound, 3*quantum, bbrMinPipe*b.mss)
	if b.state == bbrUp {
		bound += 2 * b.mss
	}
	return bound
}

// inflight returns what fills the path at a bandwidth.
func (b *bbr) inflight(bw float64) float64 { return b.budget(b.bdp(bw, 1)) }

// headroom returns the bound that leaves something to others.
func (b *bbr) headroom() float64 {
	long := b.model.inflightLong
	if math.IsInf(long, 1) {
		return long
	}
	return max(long-max(b.mss, bbrHeadroom*long), bbrMinPipe*b.mss)
}

// setCwnd is Section 5.6.4.6.
func (b *bbr) setCwnd(s *Sample) {
	_, gain := b.gains()
	most := b.budget(b.bdp(b.model.bw, gain) + b.extra.most(b.rounds.count, b.full.reached))
	acked := float64(s.Delivered)
	switch {
	case b.full.reached:
		b.cwnd = min(b.cwnd+acked, most)
	case b.cwnd < most || float64(b.rounds.total) < b.initial:
		b.cwnd += acked
	}
	b.cwnd = max(b.cwnd, bbrMinPipe*b.mss)
	if b.state == bbrInProbeRTT {
		b.cwnd = min(b.cwnd, b.probeRTTCwnd())
	}
	// Section 5.6.4.7.
	bound := math.Inf(1)
	switch {
	case b.state == bbrInProbeRTT || b.state == bbrCruise:
		bound = b.headroom()
	case b.state.probesBW():
		bound = b.model.inflightLong
	}
	bound = max(min(bound, b.model.inflightShort), bbrMinPipe*b.mss)
	b.cwnd = min(b.cwnd, bound)
}

func (b *bbr) probeRTTCwnd() float64 {
	return max(b.bdp(b.model.bw, bbrProbeRTTGain), bbrMinPipe*b.mss)
}

// saveCwnd remembers the last window that neither recovery nor ProbeRTT
// changed.
func (b *bbr) saveCwnd() {
	if b.fast || b.state == bbrInProbeRTT {
		b.prior = max(b.prior, b.cwnd)
		return
	}
	b.prior = b.cwnd
}

// OnLoss saves what a spurious recovery has to give back. What losses mean is
// told from samples; a timeout begins again with one segment (Section
// 5.6.4.4). Marks mean nothing to this version of the draft.
func (b *bbr) OnLoss(l Loss, s *Sample) {
	if l == LossECN {
		return
	}
	b.saveCwnd()
	m := &b.model
	b.undo = bbrUndo{
		valid: true, bwShort: m.bwShort, inflShort: m.inflightShort, inflLg: m.inflightLong,
	}
	if l == LossTimeout {
		b.cwnd = b.mss
		b.loss.inRound = true
	}
	b.fast = l == LossFast
}

// Undo is Section 5.5.11.
func (b *bbr) Undo() {
	u := &b.undo
	if !u.valid {
		return
	}
	b.cwnd = max(b.cwnd, b.prior)
	b.loss.inRound = false
	b.full.reset()
	m := &b.model
	m.bwShort = max(m.bwShort, u.bwShort)
	m.inflightShort = max(m.inflightShort, u.inflShort)
	m.inflightLong = max(m.inflightLong, u.inflLg)
	switch {
	case !u.left || b.state == u.state || b.state == bbrInProbeRTT:
	case u.state == bbrStartup:
		b.full.reached = false
		b.state = bbrStartup
	default:
		b.startRefill()
	}
	*u = bbrUndo{}
}
