package spec

import (
	"flag"
	"testing"

	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/wire"
)

var verbose = flag.Bool("spec.trace", false, "log the segments of items that do not pass")

// TestSelf plays every item against this module's own stack. It departs from
// the RFCs in its defaults only, as Linux and Go do.
func TestSelf(t *testing.T) {
	chosen := map[string]bool{
		"M023": true, // DSS checksums are asked for when the user wants them
		"T22":  true, // Nagle's algorithm is off
		"T23":  true, // the least RTO is 200 ms
		"T26":  true, // keepalives are on
	}
	for _, it := range Items(nil) {
		t.Run(it.ID, func(t *testing.T) {
			r := Run(it, func(s Setup) (Target, error) { return NewSelf(s), nil })
			switch r.Verdict {
			case Fail:
				t.Errorf("%s: %s", it.Title, r.Note)
			case Deviation:
				if !chosen[it.ID] {
					t.Errorf("%s: %s", it.Title, r.Note)
				}
			case Skip:
				t.Logf("%s: %s", r.Verdict, r.Note)
			}
			if *verbose && r.Verdict != Pass {
				for _, line := range r.Trace {
					t.Log(line)
				}
			}
		})
	}
}

// TestFastOpenItemsApply makes sure that none of the items of RFC 8684, Appendix
// B, is passed over for want of a cookie.
func TestFastOpenItemsApply(t *testing.T) {
	for _, it := range fastOpenItems {
		if r := Run(it, func(s Setup) (Target, error) { return NewSelf(s), nil }); r.Verdict != Pass {
			t.Errorf("%s: %s (%s)", it.ID, r.Verdict, r.Note)
		}
	}
}

// deaf is a target that gets nothing.
type deaf struct{ Target }

func (deaf) Send(Packet) {}

// TestItemsPassNoDeadTarget makes sure that no item passes for want of an
// answer, but for those that ask for silence.
func TestItemsPassNoDeadTarget(t *testing.T) {
	silence := map[string]bool{
		"T33":  true,                             // must not answer at all
		"M006": true, "M023": true, "M036": true, // are about the SYN alone
		"T25": true,
	}
	for _, it := range Items(nil) {
		r := Run(it, func(s Setup) (Target, error) { return deaf{NewSelf(s)}, nil })
		if r.Verdict != Fail && r.Verdict != Skip && !silence[it.ID] {
			t.Errorf("%s: a dead target gets %s (%s)", it.ID, r.Verdict, r.Note)
		}
	}
}

// stripped is a target behind a box that takes the MPTCP options of all but
// its SYNs and SYN/ACKs.
type stripped struct{ Target }

func (s stripped) Recv(until mono.Time) (Packet, bool) {
	p, ok := s.Target.Recv(until)
	if !ok {
		return p, ok
	}
	in, whole := parse(p)
	if whole && in.Flags&wire.SYN == 0 && hasMPTCP(in) {
		in.Has &^= wire.OptMPTCP
		return packetOf(&in.Segment, nil, p.At), true
	}
	return p, ok
}

// TestItemsMissMPTCP makes sure that items of the data level notice when the
// target does not speak it.
func TestItemsMissMPTCP(t *testing.T) {
	for _, group := range [][]Item{dataItems, windowItems, addrItems, fallbackItems} {
		for _, it := range group {
			r := Run(it, func(s Setup) (Target, error) { return stripped{NewSelf(s)}, nil })
			if r.Verdict == Pass {
				t.Errorf("%s passes although no MPTCP option comes", it.ID)
			}
		}
	}
}
