package subflow

import (
	"time"

	"github.com/gomptcp/gomptcp/internal/mono"
)

// search looks for the largest packet that the path carries, with data as
// probes (RFC 4821, RFC 8899). Sizes are of TCP header, options and payload.
// What is known to work is sender.mtu.
type search struct {
	top    int  // larger packets are thought not to work
	bisect bool // top is a guess between what worked and what did not

	lo, hi relSSN // the probe under way; hi 0 = none
	size   int    // of the last probe
	failed int    // probes of that size that were lost

	notBefore mono.Time // no probe until then; 0 = at any time
	done      bool      // the search has ended, and begins again then
}

const (
	// maxProbes is how many probes of a size are lost before it is given up
	// (RFC 8899, Section 5.1.2, MAX_PROBES).
	maxProbes = 3
	// raiseAfter is how long a search that ended below the link's MTU, or an
	// ICMP message, holds (RFC 8899, Section 5.1.1, PMTU_RAISE_TIMER: "This timer
	// has a period of 600 seconds, as recommended by PLPMTUD").
	raiseAfter = 600 * time.Second
	// leastGain ends the search: fewer bytes more are not worth a probe.
	leastGain = 20
	// blackHoleTimeouts is after how many timeouts in a row large packets are
	// suspected: R1 of RFC 9293, Section 3.8.3, at which the path is to be
	// questioned.
	blackHoleTimeouts = 3
)

// searching returns the state of the search, to be changed.
func (s *Subflow) searching() *search {
	if s.search == nil {
		s.search = &search{top: s.mtu}
	}
	return s.search
}

// mostMTU is the largest packet that this end's link and the peer take.
func (s *Subflow) mostMTU() int { return min(s.mtu, s.snd.peerMSS+headerLen) }

// baseMTU is a packet that every path is thought to carry.
func (s *Subflow) baseMTU() int { return defaultMSS(s.ends.Remote.Addr()) + headerLen }

// probeWanted returns the payload of the probe that would be sent if there
// were enough data and room; 0 if none.
func (s *Subflow) probeWanted(now mono.Time) int {
	most := s.mostMTU()
	if s.snd.mtu >= most {
		return 0
	}
	p := s.searching()
	if p.hi != 0 || now < p.notBefore || s.rec.pass {
		return 0 // what goes beyond the window is no place for a trial
	}
	switch gain := min(p.top, most) - s.snd.mtu; {
	case gain < leastGain && p.top >= most:
		return 0
	case gain < leastGain && !p.done:
		p.done, p.notBefore = true, now.Add(raiseAfter)
		return 0
	case gain < leastGain:
		*p = search{top: s.mtu}
	}
	size := min(p.top, most)
	if p.bisect {
		size = (s.snd.mtu + size + 1) / 2
	}
	if size != p.size {
		p.size, p.failed = size, 0
	}
	n := s.snd.mss + size - s.snd.mtu
	if !s.mayProbe(n) {
		return 0
	}
	return n
}

// mayProbe reports whether a probe of n bytes is in order: nothing is being
// recovered, and enough follows to find out if it is lost.
func (s *Subflow) mayProbe(n int) bool {
	q := &s.queue
	return s.rec.phase == phaseOpen && q.pending == 0 && q.sacked == 0 && !s.rack.tlp.due &&
		s.rec.ceiling == 0 && s.snd.wnd >= n+s.snd.mss && s.cwnd() >= n+3*s.snd.mss
}

// probeSize returns the payload of the probe that is to be sent at now; 0 if
// none is.
func (s *Subflow) probeSize(now mono.Time) int {
	n := s.probeWanted(now)
	window := int(s.snd.una) + s.snd.wnd - int(s.snd.nxt)
	if n == 0 || n > int(s.snd.border()-s.snd.nxt) || n > window || n > s.budget(now) {
		return 0
	}
	return n
}

// probed notes that a probe is [lo, hi).
func (s *Subflow) probed(lo, hi relSSN) {
	p := s.searching()
	p.lo, p.hi = lo, hi
	s.count.trouble().mtuProbes++
}

// probeFate looks at what became of the probe and returns how many bytes of
// what was found lost are its.
//
// RFC 4821, Section 4: "when only an isolated probe packet is detected as
// lost", "the normal congestion (window or data rate) reduction SHOULD be
// suppressed."
func (s *Subflow) probeFate(now mono.Time) int {
	p, q := s.search, &s.queue
	if p == nil || p.hi == 0 {
		return 0
	}
	if s.snd.una < p.hi {
		i := q.find(p.lo)
		if i >= q.len() {
			return 0
		}
		r := q.get(i)
		if r.marks&markLost != 0 {
			n := r.len()
			s.probeFailed(now)
			return n
		}
		if r.marks&markSACKed == 0 || r.hi < p.hi {
			return 0
		}
	}
	p.hi = 0
	if p.size > s.snd.mtu {
		s.snd.mtu = p.size
		s.updateMSS()
	}
	return 0
}

// probeFailed notes the loss of the probe.
//
// RFC 4821, Section 4: "requiring a minimum headway between a suppressed
// congestion adjustment (due to a failed probe) and the next attempted probe,
// which is equal to one round-trip time for each packet permitted by the
// congestion window."
func (s *Subflow) probeFailed(now mono.Time) {
	p := s.search
	p.hi = 0
	p.notBefore = now.Add(time.Duration(s.cwnd()/s.snd.mss) * s.rtt.srtt)
	if p.failed++; p.failed >= maxProbes {
		p.top, p.bisect = p.size-1, true
	}
}

// blackHole falls back to a size that every path carries when timeouts in a
// row suggest that the path loses large packets without telling. The search
// goes up from there, first to what may have worked before.
//
// RFC 8899, Section 4.3: "a mechanism implemented within the PL to detect
// excessive loss of data sent with a specific packet size".
func (s *Subflow) blackHole() {
	base := s.baseMTU()
	if s.rec.timeouts != blackHoleTimeouts || s.snd.mtu <= base || s.queue.len() == 0 {
		return
	}
	if r := s.queue.get(0); min(r.len(), r.mss) <= s.snd.mss-(s.snd.mtu-base) {
		return // a small one is lost, too
	}
	s.count.trouble().blackHoles++
	*s.searching() = search{top: s.snd.mtu}
	s.snd.mtu = base
	s.updateMSS()
}
