package spec

import (
	"testing"
	"time"
)

// TestAddressesThatComeBackAreJoinedAgain takes each address of a host away and
// gives it back, twice, the initial one included: each time it is joined from
// again, under the id that it had, and carries data.
func TestAddressesThatComeBackAreJoinedAgain(t *testing.T) {
	script := func(which int) func(s *Script) {
		return func(s *Script) {
			d, syn := s.wantJoin()
			ids := [2]uint8{0, syn.Join.AddrID}
			d.joined(syn, Join{})
			for range 2 {
				s.must(s.T.SetAddr(which, false), "loss of an address")
				s.Wait(quietly)
				s.must(s.T.SetAddr(which, true), "return of an address")
				from := s.T.Addr(which)
				again := s.wantStray("join from the address that came back", time.Minute, all(joinSYN, func(in *In) bool {
					return in.Src.Addr() == from
				}))
				s.Check(again.Join.AddrID == ids[which], "%v had id %d and comes back as %d", from, ids[which], again.Join.AddrID)
				f := d.joined(again, Join{})
				f.data(100)
				d.wantRead("data to the address that came back", 100)
				d.write(1000)
				d.wantAll("data of the target", soon)
			}
		}
	}
	for which := range 2 {
		r := Run(Item{ID: "re-add", Setup: joinsFirst, Play: script(which)},
			func(s Setup) (Target, error) { return NewSelf(s), nil })
		if r.Verdict != Pass {
			t.Errorf("address %d: %s", which, r.Note)
			for _, line := range r.Trace {
				t.Log(line)
			}
		}
	}
}
