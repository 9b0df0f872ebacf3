package spec

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/gomptcp/gomptcp/internal/mono"
)

// Verdict is the outcome of an item.
type Verdict string

// Verdicts.
const (
	Pass      Verdict = "pass"
	Fail      Verdict = "fail"
	Deviation Verdict = "deviation" // not what the RFC says, but what the target documents
	Skip      Verdict = "skip"      // the target cannot be brought there, or need not be
)

// Port numbers of the scripts: where the target listens, and where the peer
// does.
const (
	targetPort = 5001
	peerPort   = 6001
)

// Waiting times. A target answers at once, give or take a delayed ACK and what
// a busy machine adds in real time.
const (
	soon    = 2 * time.Second
	quietly = 700 * time.Millisecond // how long a silence is listened to
)

// patience bounds an item where time is real.
const patience = time.Minute

// Script is one run of an item: the network between peer and target, as the
// peer sees it.
type Script struct {
	T     Target
	Setup Setup

	flows  []*Flow
	strays []*In // segments for no flow
	ports  uint16
	gather bool     // segments of the peer wait in burst
	burst  []Packet // see atOnce
	log    []string
}

// verdict ends a script; play recovers it.
type verdict struct {
	Verdict Verdict
	Note    string
}

func addrPort(a netip.Addr, p uint16) netip.AddrPort { return netip.AddrPortFrom(a, p) }

// Failf ends the script: the target broke the requirement.
func (s *Script) Failf(format string, args ...any) {
	panic(verdict{Fail, fmt.Sprintf(format, args...)})
}

// Deviate ends the script: the target does what its documentation says, which
// is not what the RFC says.
func (s *Script) Deviate(note string) { panic(verdict{Deviation, note}) }

// Skipf ends the script without a judgement.
func (s *Script) Skipf(format string, args ...any) {
	panic(verdict{Skip, fmt.Sprintf(format, args...)})
}

// Check fails the script unless ok.
func (s *Script) Check(ok bool, format string, args ...any) {
	if !ok {
		s.Failf(format, args...)
	}
}

// must ends the script if the target cannot do what was asked.
func (s *Script) must(err error, what string) {
	switch err {
	case nil:
	case ErrUnsupported:
		s.Skipf("%s: %v", what, err)
	default:
		s.Failf("%s: %v", what, err)
	}
}

// Takes skips the item where time is real and d would be too long.
func (s *Script) Takes(d time.Duration) {
	if !s.T.Virtual() && d > 20*time.Second {
		s.Skipf("takes %v of real time", d)
	}
}

// Now is the time.
func (s *Script) Now() mono.Time { return s.T.Now() }

// Wait lets time pass. What the target sends meanwhile is kept and answered.
func (s *Script) Wait(d time.Duration) {
	for end := s.Now().Add(d); s.pull(end); {
	}
}

// pull takes the next packet of the target and gives it to its flow. It
// reports false if none came in time.
func (s *Script) pull(until mono.Time) bool {
	if !s.T.Virtual() && s.Now().Duration() > patience {
		s.Failf("the item does not come to an end within %v", patience)
	}
	p, ok := s.T.Recv(until)
	if !ok {
		return false
	}
	in, ok := parse(p)
	if !ok {
		s.Failf("the target sent what is no TCP segment: %x", p.TCP)
	}
	s.trace("target", &in.Segment)
	s.Check(in.Intact(), "the TCP checksum of %v is wrong", &in.Segment)
	for _, f := range s.flows {
		if f.local == in.Dst && f.remote == in.Src {
			f.receive(in)
			return true
		}
	}
	s.strays = append(s.strays, in)
	return true
}

// atOnce makes what send sends arrive at once, where the target can tell.
func (s *Script) atOnce(send func()) {
	s.gather = true
	send()
	all := s.burst
	s.gather, s.burst = false, nil
	if t, ok := s.T.(interface{ SendAll(all []Packet) }); ok {
		t.SendAll(all)
		return
	}
	for _, p := range all {
		s.T.Send(p)
	}
}

// stray returns the next segment that belongs to no flow and satisfies match;
// others of them are passed over. It is nil if none comes within the time.
func (s *Script) stray(within time.Duration, match Match) *In {
	for end := s.Now().Add(within); ; {
		for len(s.strays) > 0 {
			in := s.strays[0]
			s.strays = s.strays[1:]
			if match(in) {
				return in
			}
		}
		if !s.pull(end) && len(s.strays) == 0 {
			return nil
		}
	}
}

// wantStray is stray that must come.
func (s *Script) wantStray(why string, within time.Duration, match Match) *In {
	in := s.stray(within, match)
	if in == nil {
		s.Failf("%s: nothing came within %v%s", why, within, s.lastWords())
	}
	return in
}

// noStray fails if a segment for no flow satisfies match.
func (s *Script) noStray(why string, during time.Duration, match Match) {
	if in := s.stray(during, match); in != nil {
		s.Failf("%s: got %v", why, &in.Segment)
	}
}

// trace keeps the last segments for a failure's note.
func (s *Script) trace(who string, seg fmt.Stringer) {
	s.log = append(s.log, fmt.Sprintf("%8.3f %s %v", s.Now().Duration().Seconds(), who, seg))
}

// lastWords is the last segment, for a note that says that nothing came.
func (s *Script) lastWords() string {
	if len(s.log) == 0 {
		return ""
	}
	return "; last: " + s.log[len(s.log)-1]
}

// port returns a fresh port of the peer.
func (s *Script) port() uint16 {
	s.ports++
	return 40000 + s.ports
}
