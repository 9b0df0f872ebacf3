package workload

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Sizes is a distribution of sizes in bytes, at least 1.
type Sizes interface {
	// Draw returns a size.
	Draw(*rand.Rand) int64
	// CDF returns the probability of a size of at most x bytes.
	CDF(x float64) float64
	// Mean returns the expected size.
	Mean() float64
}

// Fixed are sizes that are all the same.
type Fixed int64

// Draw implements Sizes.
func (f Fixed) Draw(*rand.Rand) int64 { return int64(f) }

// CDF implements Sizes.
func (f Fixed) CDF(x float64) float64 {
	if x < float64(f) {
		return 0
	}
	return 1
}

// Mean implements Sizes.
func (f Fixed) Mean() float64 { return float64(f) }

// BoundedPareto is Pareto's distribution cut at both ends.
type BoundedPareto struct {
	Alpha     float64 // of the tail; not 1
	Low, High float64 // bytes; 0 < Low < High
}

// Draw implements Sizes, by inversion.
func (p BoundedPareto) Draw(rng *rand.Rand) int64 {
	cut := math.Pow(p.Low/p.High, p.Alpha)
	x := p.Low * math.Pow(1-rng.Float64()*(1-cut), -1/p.Alpha)
	return int64(math.Ceil(min(x, p.High)))
}

// CDF implements Sizes.
func (p BoundedPareto) CDF(x float64) float64 {
	x = min(max(x, p.Low), p.High)
	return (1 - math.Pow(p.Low/x, p.Alpha)) / (1 - math.Pow(p.Low/p.High, p.Alpha))
}

// Mean implements Sizes.
func (p BoundedPareto) Mean() float64 {
	a := p.Alpha
	la := math.Pow(p.Low, a)
	return la * a / (a - 1) * (math.Pow(p.Low, 1-a) - math.Pow(p.High, 1-a)) / (1 - math.Pow(p.Low/p.High, a))
}

// S1 is a bounded Pareto distribution with the exponent 1.1 of which 99 % are
// at most 800 KB, and all at most high bytes: the sizes of short and long flows
// where the measured ones of a 2015 paper on flow scheduling are not to be had.
// With high = 1e9 the mean is 90.7 KB, with 1e8 it is 79.8 KB.
func S1(high float64) BoundedPareto {
	const alpha, at, share = 1.1, 800e3, 0.99
	// share = (1 - (L/at)^a) / (1 - (L/high)^a), solved for L^a.
	la := (1 - share) / (math.Pow(at, -alpha) - share*math.Pow(high, -alpha))
	return BoundedPareto{Alpha: alpha, Low: math.Pow(la, 1/alpha), High: high}
}

// Lognormal is a lognormal distribution.
type Lognormal struct {
	Median float64 // bytes
	Sigma  float64 // of the natural logarithm
	// Low and High bound what is drawn, in bytes; 0 = no bound. CDF and Mean do
	// not know them.
	Low, High float64
}

// Draw implements Sizes.
func (l Lognormal) Draw(rng *rand.Rand) int64 {
	x := l.Median * math.Exp(l.Sigma*rng.NormFloat64())
	x = max(x, l.Low, 1)
	if l.High > 0 {
		x = min(x, l.High)
	}
	return int64(math.Ceil(x))
}

// CDF implements Sizes.
func (l Lognormal) CDF(x float64) float64 {
	if x <= 0 {
		return 0
	}
	return 0.5 * math.Erfc(-math.Log(x/l.Median)/l.Sigma/math.Sqrt2)
}

// Mean implements Sizes.
func (l Lognormal) Mean() float64 { return l.Median * math.Exp(l.Sigma*l.Sigma/2) }

// Mixture draws from one of several distributions.
type Mixture []Share

// Share is a distribution in a Mixture.
type Share struct {
	Weight float64 // of all; they need not add up to 1
	Sizes
}

func (m Mixture) total() (sum float64) {
	for _, s := range m {
		sum += s.Weight
	}
	return sum
}

// Draw implements Sizes.
func (m Mixture) Draw(rng *rand.Rand) int64 {
	u := rng.Float64() * m.total()
	for _, s := range m[:len(m)-1] {
		if u -= s.Weight; u < 0 {
			return s.Sizes.Draw(rng)
		}
	}
	return m[len(m)-1].Sizes.Draw(rng)
}

// CDF implements Sizes.
func (m Mixture) CDF(x float64) (p float64) {
	for _, s := range m {
		p += s.Weight * s.Sizes.CDF(x)
	}
	return p / m.total()
}

// Mean implements Sizes.
func (m Mixture) Mean() (mean float64) {
	for _, s := range m {
		mean += s.Weight * s.Sizes.Mean()
	}
	return mean / m.total()
}

// S2 is what was measured of 2.17e9 TCP flows of a campus in 2015 (Jurkiewicz,
// Rzym and Borylo, "Flow length and size distributions in campus Internet
// traffic", 2021; model agh_2015 of flow-models): a mixture of eight
// lognormals with a mean of 112.5 KB.
func S2() Mixture {
	l := func(weight, sigma, median float64) Share {
		return Share{weight, Lognormal{Median: median, Sigma: sigma}}
	}
	return Mixture{
		l(.35622, .39072, 97.45), l(.24596, .80906, 309.4), l(.29937, 1.07676, 2126.7), l(.08065, 1.30826, 25681),
		l(.015039, 1.35133, 416681), l(.0020747, 1.08247, 5.6022e6), l(.00068263, 1.01911, 5.3432e7), l(8.2327e-6, 1.19047, 5.1447e8),
	}
}

// SizesByName returns S1 with a bound of 1 GB ("s1") or 100 MB ("s1-100mb"), or
// S2 ("s2").
func SizesByName(name string) (Sizes, error) {
	switch name {
	case "s1":
		return S1(1e9), nil
	case "s1-100mb":
		return S1(1e8), nil
	case "s2":
		return S2(), nil
	}
	return nil, fmt.Errorf("no sizes are called %q; there are s1, s1-100mb, s2", name)
}
