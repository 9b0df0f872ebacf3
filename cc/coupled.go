package cc

// newCoupledGroup is the fully coupled algorithm COUPLED of Kelly and Voice
// (2005) and Han et al. (2006), in the form that Wischik et al. (NSDI 2011)
// give: all traffic moves to the paths that lose least. It flaps between equal
// paths, and does not probe a path on which its window has fallen to one
// segment.
func newCoupledGroup() Group { return &linkedGroup{rule: coupled{}, base: renoBase} }

type coupled struct{}

// gain is 1/w_total in segments.
func (coupled) gain(v *shared, m *member) float64 { return m.mss * min(1/v.total(), 1/m.window) }

// keep takes half of the whole connection's window from this one.
func (coupled) keep(v *shared, m *member, _ Loss, _ float64) float64 {
	return max(1-v.total()/2/m.window, 0)
}

// floors lets the window stay at one segment after a loss, without slow start.
func (coupled) floors(*shared) floors { return floors{mark: 1, loss: 1} }

// SemiCoupled is the algorithm SEMICOUPLED of Wischik et al. (NSDI 2011):
// increases of A/w_total in segments, and Reno's decrease. Paths get traffic
// in inverse proportion to their loss rates, so that all are probed.
type SemiCoupled struct {
	// A is the aggressiveness. Over n equal paths the windows together are
	// sqrt(A*n) times that of one TCP, so 0 means 1/n, by which they take what
	// one TCP would if they share a bottleneck.
	A float64
}

// Group is a Factory.
func (c SemiCoupled) Group() Group {
	return &linkedGroup{rule: semicoupled{a: c.A}, base: renoBase}
}

type semicoupled struct {
	cutAlone
	a float64
}

func (c semicoupled) gain(v *shared, m *member) float64 {
	a := c.a
	if a <= 0 {
		a = 1 / float64(v.active())
	}
	return m.mss * min(a/v.total(), 1/m.window)
}
