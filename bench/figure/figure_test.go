package figure

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// wellFormed reads a whole document, and with it every tag.
func wellFormed(t *testing.T, svg string) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
	}
}

func samplePanels() []Panel {
	nan := math.NaN()
	return []Panel{
		&XY{
			Title: "Rate <per path> & total", Note: "one", X: Axis{Label: "s"}, Y: Axis{Label: "Mb/s"},
			Stacks: []Line{{Name: "path0", X: []float64{1, 2}, Y: []float64{3, 4}, Step: true}, {Name: "path1", X: []float64{1, 2}, Y: []float64{1, 1}, Step: true}},
			Lines:  []Line{{Name: "limit", Ref: true, X: []float64{1, 2}, Y: []float64{5, 5}}},
			Shades: []Shade{{1.2, 1.5, "outage"}},
		},
		&Bars{
			Title: "Bars", Y: Axis{Label: "ratio"}, Groups: []string{"a", "a rather long name"},
			Series: []Bar{
				{Name: "minrtt", Mean: []float64{1, nan}, Lo: []float64{0.9, nan}, Hi: []float64{1.1, nan}, Paper: []float64{1.2, nan}},
				{Name: "blest", Mean: []float64{2, 1}},
			},
			Refs: []Ref{{1.5, "sum"}},
		},
		&XY{Title: "Distribution", X: Axis{Log: true}, Lines: []Line{Distribution("fsfs", []float64{0, 0.1, 1, 10, 100})}},
		&XY{Title: "Nothing"},
		&Bars{Title: "Nothing"},
	}
}

func TestSheetIsWellFormedAndSplitsIntoItsPanels(t *testing.T) {
	panels := samplePanels()
	sheet := Sheet(panels, 2)
	wellFormed(t, sheet)
	require.NotContains(t, sheet, "NaN")
	require.NotContains(t, sheet, "Inf")
	require.Equal(t, sheet, Sheet(samplePanels(), 2), "the same panels give the same bytes")
	parts := Split(sheet)
	require.Len(t, parts, len(panels))
	for _, p := range parts {
		wellFormed(t, p)
	}
	require.Contains(t, parts[0], "Rate &lt;per path&gt; &amp; total")
}

// A linear axis from 0 to 10 over 100 units, and a logarithmic one over three
// decades, by hand.
func TestScales(t *testing.T) {
	lin := Axis{}.fit(0, 10, 100, 200, 5)
	require.Equal(t, []float64{0, 2, 4, 6, 8, 10}, lin.ticks)
	at, ok := lin.at(2.5)
	require.True(t, ok)
	require.InDelta(t, 125, at, 1e-9)
	at, _ = lin.at(99)
	require.InDelta(t, 200, at, 1e-9, "held within the panel")

	log := Axis{Log: true}.fit(1, 1000, 0, 300, 5)
	require.Equal(t, []float64{1, 10, 100, 1000}, log.ticks)
	at, _ = log.at(10)
	require.InDelta(t, 100, at, 1e-9)
	_, ok = log.at(0)
	require.False(t, ok)
}

func TestSameNameSameLook(t *testing.T) {
	require.Equal(t, slot("path1"), slot("subflow 1"))
	require.Equal(t, looks([]string{"path0", "path1"})[1], looks([]string{"path1"})[0])
	require.Equal(t, slot("minrtt"), looks([]string{"blest", "minrtt"})[1])
	// All known names of one list differ, in colour or dash.
	for _, list := range known {
		seen := make(map[int]string)
		for _, s := range list {
			require.Empty(t, seen[slot(s)], s)
			seen[slot(s)] = s
		}
	}
	two := looks([]string{"unheard of", "unheard of too", "and this", "and that", "fifth", "sixth", "seventh", "eighth", "ninth"})
	used := make(map[int]bool)
	for _, s := range two {
		require.False(t, used[s])
		used[s] = true
	}
}

func TestLabels(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.25: "0.25", 1500: "1500", 25000: "25k", 3e6: "3M", 0.1 + 0.2: "0.3"} {
		require.Equal(t, want, label(v))
	}
}
