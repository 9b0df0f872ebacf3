package spec

import (
	"flag"
	"testing"
)

var verbose = flag.Bool("spec.trace", false, "log the segments of items that do not pass")

// pending are items that our own stack fails today, with the reason. An item
// here that passes is an error too, so that the list cannot grow stale.
var pending = map[string]string{
	"M109": "a repeated ADD_ADDR of a refused address leads to no new join",
	"M111": "a known id with another port is joined at the old port",
	"T25":  "a dial gives up after 127 s",
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
