//go:build !race

package sim_test

import "time"

// slowdown divides the rates of the largest runs under the race detector;
// fillLimit is within how long a long fat path is to be full.
const (
	slowdown  = 1
	fillLimit = 15 * time.Second
)
