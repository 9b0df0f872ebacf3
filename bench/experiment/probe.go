package experiment

import (
	"time"

	"github.com/gomptcp/gomptcp/internal/sim"
)

// Probe reads counters of a simulation at regular times.
type Probe struct {
	Seconds []float64   // end of each period
	Rates   [][]float64 // of each counter in each period, in Mb/s
	last    []uint64
}

// ProbeRates begins to read counters of bytes every period until the
// simulation ends.
func ProbeRates(s *sim.Sim, every time.Duration, counters ...func() uint64) *Probe {
	p := &Probe{Rates: make([][]float64, len(counters)), last: make([]uint64, len(counters))}
	for i, read := range counters {
		p.last[i] = read()
	}
	var tick func()
	tick = func() {
		p.Seconds = append(p.Seconds, s.Elapsed().Seconds())
		for i, read := range counters {
			now := read()
			p.Rates[i] = append(p.Rates[i], float64(now-p.last[i])*8/every.Seconds()/1e6)
			p.last[i] = now
		}
		s.After(every, tick)
	}
	s.After(every, tick)
	return p
}

// Payload returns the counter of payload bytes that arrived over a direction of
// a link, copies included.
func Payload(d *sim.Direction) func() uint64 {
	return func() uint64 { return d.Stats().ArrivedBytes }
}
