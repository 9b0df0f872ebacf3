package scheduler

import "math/bits"

// Reasons of the policies that go by the size of a flow.
const (
	ReasonFirst Reason = "the first subflow suffices"
	ReasonClass Reason = "least rtt in its class"
)

// adaBytes is what ada sends on the first subflow.
const adaBytes = 100 << 10

// ada sends the first 100 KiB on the first subflow only, then as minrtt-plain
// does (Dong et al., DCMPTCP; mptcp_ada.c): short flows do not pay for several
// small windows.
func ada(v *View) Decision {
	set, d, done := v.forFresh()
	if done || v.First >= adaBytes {
		if !done {
			d = v.leastRTT(set, "")
		}
		return d
	}
	first := bits.TrailingZeros64(set)
	if v.Subflows[first].Room == 0 {
		return wait(ReasonNoRoom)
	}
	return Decision{Send: 1 << first, Bytes: int(adaBytes - v.First), Reason: ReasonFirst}
}

func newADA() Scheduler { return Func(ada) }

// FSFSClasses are the sizes, in bytes, up to which a flow belongs to classes
// G0, G1 and G2, which use one, two and three paths; longer ones are G3 and use
// all. A flow of exactly that size belongs to the lower class. The paper's KB
// is taken as 1000 bytes.
type FSFSClasses [3]int64

// DefaultFSFSClasses are those of the paper.
var DefaultFSFSClasses = FSFSClasses{100_000, 300_000, 800_000}

// Paths returns how many paths a flow of so many bytes uses, of n that there
// are.
func (c FSFSClasses) Paths(bytes int64, n int) int {
	for i, most := range c {
		if bytes <= most {
			return min(i+1, n)
		}
	}
	return n
}

// fsfs is MPTCP-FSFS on subflows that exist already: a flow uses the k fastest
// of them, as its class says, and among those the fastest with room. A flow
// whose size nobody knows begins in G0 and is promoted as it sends. To open no
// more subflows than that in the first place is the business of the path
// manager "flowsize".
type fsfs struct{ classes FSFSClasses }

// FSFS makes schedulers of the policy "fsfs" with other classes.
func FSFS(classes FSFSClasses) Factory {
	return func() Scheduler { return &fsfs{classes} }
}

func (f *fsfs) Pick(v *View) Decision {
	set, d, done := v.forFresh()
	if done {
		return d
	}
	size := v.FlowSize
	if size == 0 {
		size = v.First + 1
	}
	k := f.classes.Paths(size, bits.OnesCount64(set))
	if set = v.fastest(set, k); v.Free(set) == 0 {
		return wait(ReasonNoRoom)
	}
	return v.leastRTT(set, ReasonClass)
}

// fastest returns the k subflows of set with the least RTTs.
func (v *View) fastest(set uint64, k int) (best uint64) {
	if k >= bits.OnesCount64(set) {
		return set
	}
	for ; k > 0; k-- {
		i := v.Fastest(set &^ best)
		if i < 0 {
			break
		}
		best |= 1 << i
	}
	return best
}
