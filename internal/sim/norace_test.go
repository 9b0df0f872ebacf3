//go:build !race

package sim_test

// slowdown divides the rates of the largest runs under the race detector.
const slowdown = 1
