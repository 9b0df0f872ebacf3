package experiment

import (
	"fmt"
	"math"
)

// Quantile returns the p-quantile of sorted values by linear interpolation
// between order statistics (type 7 of Hyndman and Fan).
func Quantile(sorted []float64, p float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	at := p * float64(len(sorted)-1)
	i := int(at)
	if i >= len(sorted)-1 {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

// Mean returns the arithmetic mean of values; NaN if there are none.
func Mean(values []float64) float64 {
	var sum float64
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// Interval returns the mean of values and its 95 % confidence interval by
// Student's t with n-1 degrees of freedom. The bounds are NaN for fewer than
// two values.
func Interval(values []float64) (mean, lo, hi float64) {
	n := float64(len(values))
	mean = Mean(values)
	if n < 2 {
		return mean, math.NaN(), math.NaN()
	}
	var squares float64
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	half := studentT(len(values)-1) * math.Sqrt(squares/(n-1)/n)
	return mean, mean - half, mean + half
}

// Ratios returns a[i]/b[i]: of two schemes, seed by seed, which takes out what
// the seed did to both.
func Ratios(a, b []float64) []float64 {
	if len(a) != len(b) {
		panic(fmt.Sprintf("ratios of %d to %d values", len(a), len(b)))
	}
	r := make([]float64, len(a))
	for i := range a {
		r[i] = a[i] / b[i]
	}
	return r
}

// tTable holds the 0.975 quantiles of Student's t distribution for 1 to 30
// degrees of freedom.
var tTable = [...]float64{
	12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
	2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860,
	2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423,
}

// studentT returns the 0.975 quantile of Student's t distribution with df
// degrees of freedom; beyond the table by its expansion around the normal
// distribution's (Abramowitz and Stegun 26.7.5).
func studentT(df int) float64 {
	if df <= len(tTable) {
		return tTable[df-1]
	}
	const z = 1.959963985
	n := float64(df)
	return z + (z*z*z+z)/(4*n) + (5*math.Pow(z, 5)+16*z*z*z+3*z)/(96*n*n)
}
