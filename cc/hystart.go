package cc

import (
	"math"
	"time"
)

// Constants of RFC 9406, Section 4.3.
const (
	hystartMinThresh  = 4 * time.Millisecond
	hystartMaxThresh  = 16 * time.Millisecond
	hystartDivisor    = 8
	hystartSamples    = 8
	hystartCSSDivisor = 4
	hystartCSSRounds  = 5
	hystartLimit      = 8 // L, segments, for senders that do not pace
)

// hystart is HyStart++ (RFC 9406): it leaves the first slow start when round
// trips grow longer, before the queue overflows, and by way of a phase of
// slower growth that takes the decision back if they shorten again. The zero
// value is ready for use.
type hystart struct {
	over     bool // a congestion signal or CSS has ended slow start
	css      bool // Conservative Slow Start
	round    uint64
	lastMin  time.Duration // least RTT of the last round; 0 = no round yet
	curMin   time.Duration // of this round; 0 = no sample
	samples  int
	baseline time.Duration // RTT above which CSS was justified
	rounds   int           // of CSS, the present one included
}

// slowStart opens the window for one ACK below the threshold. After the first
// slow start it is the standard one (RFC 9406, Section 4.2: "An implementation
// SHOULD use HyStart++ only for the initial slow start").
func (h *hystart) slowStart(w *window, s *Sample) {
	if h.over {
		w.slowStart(s.Acked)
		return
	}
	h.follow(s)
	n := min(float64(s.Acked), hystartLimit*w.mss)
	if h.css {
		n /= hystartCSSDivisor
	}
	w.cwnd += n
	if h.css && h.rounds > hystartCSSRounds {
		w.ssthresh = w.cwnd
		h.over = true
	}
}

// follow updates the rounds with an ACK's RTT and decides on the phase.
func (h *hystart) follow(s *Sample) {
	if s.Round != h.round {
		h.round = s.Round
		h.lastMin, h.curMin, h.samples = h.curMin, 0, 0
		if h.css {
			h.rounds++
		}
	}
	if s.RTT <= 0 {
		return
	}
	if h.curMin == 0 || s.RTT < h.curMin {
		h.curMin = s.RTT
	}
	h.samples++
	if h.samples < hystartSamples {
		return
	}
	switch {
	case !h.css && h.lastMin > 0 && h.curMin >= h.lastMin+rttThresh(h.lastMin):
		// A partial round counts as the first of CSS.
		h.css, h.baseline, h.rounds = true, h.curMin, 1
	case h.css && h.curMin < h.baseline:
		h.css, h.baseline = false, math.MaxInt64
	}
}

// rttThresh is by how much a round's least RTT must exceed that of the round
// before.
func rttThresh(last time.Duration) time.Duration {
	return max(hystartMinThresh, min(last/hystartDivisor, hystartMaxThresh))
}

// stop ends the first slow start: a congestion signal came.
func (h *hystart) stop() { h.over = true }
