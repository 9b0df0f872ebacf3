package figure

import (
	"math"
	"strconv"
)

// Axis is one axis of a panel.
type Axis struct {
	Label    string
	Log      bool    // logarithmic; values of 0 and less are left out
	Min, Max float64 // both 0 = from what is drawn

	tight bool // ends where the values do, not at a tick
}

// scale maps values to places.
type scale struct {
	log      bool
	min, max float64
	from, to float64 // places of min and max
	ticks    []float64
}

// fit makes the scale of an axis over values between lo and hi.
func (a Axis) fit(lo, hi, from, to float64, ticks int) scale {
	if a.Min != 0 || a.Max != 0 {
		lo, hi = a.Min, a.Max
	}
	if math.IsInf(lo, 0) || math.IsInf(hi, 0) || math.IsNaN(lo) || math.IsNaN(hi) {
		lo, hi = 0, 1
	}
	s := scale{log: a.Log, from: from, to: to}
	if a.Log {
		s.fitLog(lo, hi)
		return s
	}
	if hi <= lo {
		hi = lo + max(1, math.Abs(lo)*0.1)
	}
	step := niceStep((hi - lo) / float64(ticks))
	s.min, s.max = lo, hi
	if a.Min == 0 && a.Max == 0 && !a.tight {
		s.min, s.max = math.Floor(lo/step+1e-9)*step, math.Ceil(hi/step-1e-9)*step
	}
	for i := math.Ceil(s.min/step - 1e-9); i*step <= s.max+step*1e-9; i++ {
		s.ticks = append(s.ticks, i*step)
	}
	return s
}

// fitLog sets bounds and ticks of a logarithmic scale: the decades, and their
// halves and fifths where there are few.
func (s *scale) fitLog(lo, hi float64) {
	if lo <= 0 || hi <= 0 {
		lo, hi = 1, 10
	}
	if hi <= lo {
		lo, hi = lo/2, hi*2
	}
	s.min, s.max = lo, hi
	in := []float64{1}
	switch decades := math.Log10(hi / lo); {
	case decades < 1.5:
		in = []float64{1, 2, 5}
	case decades < 3:
		in = []float64{1, 3}
	}
	for d := math.Floor(math.Log10(lo)); d <= math.Log10(hi); d++ {
		for _, m := range in {
			if v := m * math.Pow(10, d); v >= lo*(1-1e-9) && v <= hi*(1+1e-9) {
				s.ticks = append(s.ticks, v)
			}
		}
	}
}

// niceStep returns the least of 1, 2, 5 times a power of ten that is at least
// x.
func niceStep(x float64) float64 {
	p := math.Pow(10, math.Floor(math.Log10(x)))
	for _, m := range [...]float64{1, 2, 5} {
		if m*p >= x*(1-1e-9) {
			return m * p
		}
	}
	return 10 * p
}

// holds reports whether v lies within the scale.
func (s *scale) holds(v float64) bool {
	slack := (s.max - s.min) * 1e-9
	return v >= s.min-slack && v <= s.max+slack
}

// at returns the place of v, held within the scale. ok is false where there is
// none.
func (s *scale) at(v float64) (place float64, ok bool) {
	if math.IsNaN(v) || s.log && v <= 0 {
		return 0, false
	}
	v = min(max(v, s.min), s.max)
	f := (v - s.min) / (s.max - s.min)
	if s.log {
		f = math.Log(v/s.min) / math.Log(s.max/s.min)
	}
	return s.from + f*(s.to-s.from), true
}

// label writes a tick's value, in thousands where it is large.
func label(v float64) string {
	a := math.Abs(v)
	switch {
	case a >= 1e9:
		return trim(v/1e9) + "G"
	case a >= 1e6:
		return trim(v/1e6) + "M"
	case a >= 1e4:
		return trim(v/1e3) + "k"
	}
	return trim(v)
}

func trim(v float64) string {
	if math.Abs(v) < 1e-12 {
		return "0"
	}
	return strconv.FormatFloat(math.Round(v*1e9)/1e9, 'g', 6, 64)
}
