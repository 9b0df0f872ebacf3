//go:build race

package sim_test

// slowdown divides the rates of the largest runs: the race detector makes
// everything many times slower.
const slowdown = 10
