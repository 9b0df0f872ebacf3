package cc

import (
	"cmp"
	"slices"
)

// newLIAGroup is the Linked Increases algorithm of RFC 6356, which simulators
// know as "RTT compensator": the increase is coupled, all else is Reno.
func newLIAGroup() Group { return &linkedGroup{rule: lia{}, base: renoBase} }

// newLIADCTCPGroup is LIA's increase with DCTCP's decrease, the obvious
// baseline for multipath in data centres.
func newLIADCTCPGroup() Group { return exact{&linkedGroup{rule: lia{}, base: dctcpBase}} }

// newLIAExactGroup is the form of LIA that Wischik et al., "Design,
// implementation and evaluation of congestion control for multipath TCP"
// (NSDI 2011), derive before they simplify it to what RFC 6356 has.
func newLIAExactGroup() Group { return &linkedGroup{rule: &liaExact{}, base: renoBase} }

type lia struct{ cutAlone }

// gain is the smaller of two. RFC 6356, equation (1):
//
//	min(alpha * bytes_acked * MSS_i / cwnd_total, bytes_acked * MSS_i / cwnd_i)
//
// with, in equation (2),
//
//	alpha = cwnd_total * MAX(cwnd_i/rtt_i^2) / (SUM(cwnd_i/rtt_i))^2
//
// so that cwnd_total cancels out. Windows in use stand for cwnd_i throughout,
// since an application-limited subflow would otherwise count by a window that
// it does not use. The increase "MUST be set to 1" where integers would make
// it 0; in floating point it is never 0.
func (lia) gain(v *shared, m *member) float64 {
	rate := v.rate()
	best := v.most(func(m *member) float64 { return m.rate() / m.rtt })
	return m.mss * min(best/(rate*rate), 1/m.window)
}

type liaExact struct {
	cutAlone
	sorted []*member // memory that is used again
}

// gain is equation (1) of the paper: over all sets of subflows that contain
// this one, the least of max(w/T^2)/(sum w/T)^2. No set of subflows then takes
// more than one TCP would on its best path. Of the sets only those matter that
// are prefixes of the order by sqrt(w)/T, as the paper's appendix shows.
func (r *liaExact) gain(v *shared, m *member) float64 {
	r.sorted = r.sorted[:0]
	for _, o := range v.members {
		if o.counts() {
			r.sorted = append(r.sorted, o)
		}
	}
	slices.SortStableFunc(r.sorted, func(a, b *member) int {
		return cmp.Compare(a.rate()/a.rtt, b.rate()/b.rtt)
	})
	least, best, rate, within := 1/m.window, 0.0, 0.0, false
	for _, o := range r.sorted {
		best = max(best, o.rate()/o.rtt)
		rate += o.rate()
		if within = within || o == m; within {
			least = min(least, best/(rate*rate))
		}
	}
	return m.mss * least
}
