package link

import (
	"math"
	"time"

	"github.com/gomptcp/gomptcp/internal/mono"
)

// RED configures Random Early Detection (Floyd and Jacobson, 1993): the share
// of packets that are marked, or dropped if they can't be, rises with the
// average length of the queue from 0 at Min to MaxP at Max, and is 1 above.
type RED struct {
	Min, Max int     // bytes waiting on average; Max 0 = no RED
	MaxP     float64 // 0 = 0.1
	Weight   float64 // of the present length in the average; 0 = 0.002
}

const (
	defaultMaxP   = 0.1
	defaultWeight = 0.002
	// redPacket is the size of the packets whose time on the link makes the
	// average fall while the queue is empty.
	redPacket = 1500 // bytes
)

// marker decides which packets are marked.
type marker struct {
	step    int // bytes; 0 = none
	red     RED
	average float64   // bytes
	count   int       // packets since the last one that was chosen
	idle    mono.Time // since when the queue has been empty; 0 = it is not
}

// step marking: RFC 8257, Section 3.1: "When a packet arrives at a switch and
// its queue length is greater than the congestion threshold, the switch sets
// the CE codepoint in the packet."
func (m *marker) over(waiting float64) bool { return m.step > 0 && waiting > float64(m.step) }

// chosen reports whether RED chooses a packet that finds so many bytes
// waiting.
func (l *Link) chosen(now mono.Time, waiting float64) bool {
	m := &l.marker
	if m.red.Max == 0 {
		return false
	}
	if waiting == 0 {
		if m.idle.Set() && l.config.Rate > 0 {
			sent := now.Sub(m.idle).Seconds() * l.config.Rate / 8 / redPacket
			m.average *= math.Pow(1-m.red.Weight, sent)
		}
		m.idle = 0
	}
	m.average += (waiting - m.average) * m.red.Weight
	if l.queue.rate > 0 {
		// The queue will be empty when what waits has been sent.
		m.idle = now.Add(time.Duration(waiting * 8 / l.queue.rate * float64(time.Second)))
	}
	m.count++
	lo, hi := float64(m.red.Min), float64(m.red.Max)
	switch {
	case m.average < lo:
		m.count = 0
		return false
	case m.average >= hi:
		m.count = 0
		return true
	}
	p := m.red.MaxP * (m.average - lo) / (hi - lo)
	// Evens out the gaps between those that are chosen.
	if left := 1 - float64(m.count)*p; left > p {
		p /= left
	} else {
		p = 1
	}
	if !l.chance(p) {
		return false
	}
	m.count = 0
	return true
}
