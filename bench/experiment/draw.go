package experiment

import (
	"math"

	"github.com/gomptcp/gomptcp/bench/figure"
)

// BarOf returns a bar of one group from one value a seed.
func BarOf(name string, values []float64) figure.Bar {
	return BarsOf(name, [][]float64{values})
}

// BarsOf returns a bar for each group from the values of each, with intervals;
// a group without values has no bar.
func BarsOf(name string, groups [][]float64) figure.Bar {
	b := figure.Bar{Name: name}
	for _, values := range groups {
		mean, lo, hi := Interval(values)
		b.Mean, b.Lo, b.Hi = append(b.Mean, mean), append(b.Lo, lo), append(b.Hi, hi)
	}
	return b
}

// LineOf returns a line through the means at each x, with intervals.
func LineOf(name string, x []float64, values [][]float64) figure.Line {
	l := figure.Line{Name: name, X: x, Marks: true}
	for _, v := range values {
		mean, lo, hi := Interval(v)
		l.Y, l.Lo, l.Hi = append(l.Y, mean), append(l.Lo, lo), append(l.Hi, hi)
	}
	return l
}

// PaperMarks returns hollow marks in the colour of a scheme; NaN is left out.
func PaperMarks(scheme string, x, y []float64) figure.Points {
	p := figure.Points{Name: scheme + " (paper)", Like: scheme, Hollow: true}
	for i := range x {
		if !math.IsNaN(y[i]) {
			p.X, p.Y = append(p.X, x[i]), append(p.Y, y[i])
		}
	}
	return p
}
