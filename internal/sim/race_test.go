//go:build race

package sim_test

// raced: a simulation is one goroutine and does the same each time, so that the
// race detector, which makes it many times slower, finds nothing in a second run
// of the same code.
const raced = true
