//go:build race

package sim_test

import "time"

// The race detector makes everything many times slower: slowdown divides the
// rates of the largest runs, and fillLimit gives a path of such a rate the time
// that CUBIC needs there after slow start went too far.
const (
	slowdown  = 10
	fillLimit = 60 * time.Second
)
