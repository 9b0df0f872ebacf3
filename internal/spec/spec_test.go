package spec

import (
	"flag"
	"testing"
)

var verbose = flag.Bool("spec.trace", false, "log the segments of items that do not pass")

// pending are items that our own stack fails today, with the reason. An item
// here that passes is an error too, so that the list cannot grow stale.
var pending = map[string]string{
	"M003": "all addresses are announced in a row",
}

// TestSelf plays every item against this module's own stack.
func TestSelf(t *testing.T) {
	for _, it := range Items(nil) {
		t.Run(it.ID, func(t *testing.T) {
			r := Run(it, func(s Setup) (Target, error) { return NewSelf(s), nil })
			why, known := pending[it.ID]
			switch {
			case r.Verdict == Fail && !known:
				t.Errorf("%s: %s", it.Title, r.Note)
			case r.Verdict != Fail && known:
				t.Errorf("%s is pending (%s) but does not fail: %s", it.ID, why, r.Verdict)
			case r.Verdict != Pass:
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
