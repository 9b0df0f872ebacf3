package experiment

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/gomptcp/gomptcp/internal/sim"
)

// Unit is one case with one seed: one simulation, and what it measured.
type Unit struct {
	Options
	Case string
	Seed uint64

	values map[string]float64
	series map[string]Series
	host   map[string]float64
	finish []func() error // when the case has run
	err    error          // the first misuse
}

// Series is a list of measurements. X may be nil: then Y are samples in no
// particular relation.
type Series struct {
	X []float64 `json:"x,omitempty"`
	Y []float64 `json:"y"`
}

// Outcome is what a unit measured.
type Outcome struct {
	Case   string             `json:"case"`
	Seed   uint64             `json:"seed"`
	Values map[string]float64 `json:"values"`
	Series map[string]Series  `json:"series,omitempty"`
	Host   map[string]float64 `json:"host,omitempty"` // differs from run to run: not part of the results
}

// Set notes a value. Its key is the same for all units of an experiment that
// measure the same; it ends in the unit where there is one: "goodput Mb/s".
func (u *Unit) Set(key string, v float64) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		u.misuse("value %q is %v", key, v)
		return
	}
	u.values[key] = v
}

// AddSeries notes measurements over x, which may be nil. All of them are kept,
// so that thousands should be thinned first: see [Thin] and [Quantiles].
func (u *Unit) AddSeries(key string, x, y []float64) {
	bad := func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }
	switch {
	case x != nil && len(x) != len(y):
		u.misuse("series %q has %d x and %d y", key, len(x), len(y))
	case slices.ContainsFunc(x, bad) || slices.ContainsFunc(y, bad):
		u.misuse("series %q holds what is no number", key)
	default:
		u.series[key] = Series{X: slices.Clone(x), Y: slices.Clone(y)}
	}
}

// SetHost notes a reading of the machine's clock, such as processor time a
// byte. It goes to NAME.host.json and takes no part in the verdict.
func (u *Unit) SetHost(key string, v float64) { u.host[key] = v }

func (u *Unit) misuse(format string, args ...any) {
	if u.err == nil {
		u.err = fmt.Errorf(format, args...)
	}
}

// Rand returns a random source for one purpose: the same for every case and
// scheme with the unit's seed, whatever else was drawn.
func (u *Unit) Rand(purpose string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(purpose))
	return rand.New(rand.NewPCG(u.Seed, h.Sum64()))
}

// Check returns an error if the simulation broke a rule that holds in every
// run.
func (u *Unit) Check(s *sim.Sim) error {
	if v := s.Violations(); len(v) > 0 {
		return errors.New(strings.Join(v, "; "))
	}
	return nil
}

// Execute runs one unit. What goes wrong in it, a panic included, is an error.
func Execute(c Case, seed uint64, o Options) (out Outcome, err error) {
	u := &Unit{Options: o, Case: c.Name, Seed: seed, values: map[string]float64{}, series: map[string]Series{}, host: map[string]float64{}}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("case %s, seed %d: panic: %v\n%s", c.Name, seed, p, debug.Stack())
		}
	}()
	err = errors.Join(c.Run(u), u.err)
	for _, f := range u.finish {
		err = errors.Join(err, f())
	}
	if err != nil {
		return Outcome{}, fmt.Errorf("case %s, seed %d: %w", c.Name, seed, err)
	}
	return Outcome{Case: c.Name, Seed: seed, Values: u.values, Series: u.series, Host: u.host}, nil
}

// Thin returns at most n of the points of a line, evenly chosen, the last one
// among them.
func Thin(x, y []float64, n int) (tx, ty []float64) {
	if len(x) <= n {
		return x, y
	}
	for i := range n {
		at := (i + 1) * len(x) / n
		tx, ty = append(tx, x[at-1]), append(ty, y[at-1])
	}
	return tx, ty
}

// Quantiles returns the n+1 quantiles 0, 1/n, ... 1 of samples, which become a
// distribution's line with [figure.Distribution]; samples is sorted by it.
func Quantiles(samples []float64, n int) []float64 {
	slices.Sort(samples)
	q := make([]float64, 0, n+1)
	for i := 0; i <= n && len(samples) > 0; i++ {
		q = append(q, Quantile(samples, float64(i)/float64(n)))
	}
	return q
}
