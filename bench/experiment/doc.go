// Package experiment holds the experiments of the laboratory, one file each,
// and what they are made of.
//
// An [Experiment] is a grid of cases by seeds. A [Case] is one setting, such
// as a scheduler and a rate; one case with one seed is a [Unit], one
// simulation of the production code in virtual time. Units are independent, so
// that they can be run on several cores or machines, and again after an
// interruption. What a unit measured is kept as an [Outcome]. When all are
// there, the experiment's Reduce turns them into the metrics and figures of a
// [Report], judged against what a paper or a closed form says.
//
// A seed says what the network and the users do, never the scheme under test:
// schemes are compared on the same arrivals, sizes and losses (common random
// numbers). See [Unit.Rand].
//
// The README of package bench shows how to write one. The program in bench/run
// runs them.
package experiment
