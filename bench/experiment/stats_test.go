package experiment

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// The interval of 1, 2, 3, 4, 5 by hand: mean 3, standard deviation sqrt(2.5),
// t with 4 degrees of freedom 2.7764.
func TestIntervalIsStudents(t *testing.T) {
	mean, lo, hi := Interval([]float64{1, 2, 3, 4, 5})
	require.InDelta(t, 3, mean, 1e-12)
	half := 2.7764 * math.Sqrt(2.5/5)
	require.InDelta(t, 3-half, lo, 1e-9)
	require.InDelta(t, 3+half, hi, 1e-9)

	_, lo, _ = Interval([]float64{7})
	require.True(t, math.IsNaN(lo), "one value has no interval")
}

// Published quantiles of Student's t, 0.975, beyond the table.
func TestStudentTBeyondTheTable(t *testing.T) {
	for df, want := range map[int]float64{31: 2.0395, 40: 2.0211, 60: 2.0003, 120: 1.9799, 1000: 1.9623} {
		require.InDelta(t, want, studentT(df), 1e-4, "%d degrees of freedom", df)
	}
}

func TestQuantiles(t *testing.T) {
	require.Equal(t, []float64{1, 2, 3, 4, 5}, Quantiles([]float64{5, 3, 1, 4, 2}, 4))
	require.InDelta(t, 1.5, Quantile([]float64{1, 2}, 0.5), 1e-12)
	require.Empty(t, Quantiles(nil, 4))
}

func TestThinKeepsTheEnd(t *testing.T) {
	x, y := Thin([]float64{1, 2, 3, 4, 5, 6}, []float64{10, 20, 30, 40, 50, 60}, 3)
	require.Equal(t, []float64{2, 4, 6}, x)
	require.Equal(t, []float64{20, 40, 60}, y)
}
