package cc

import (
	"math/bits"
	"slices"
	"time"
)

// BottleneckObserver is implemented by groups that find out which of their
// subflows share a bottleneck.
type BottleneckObserver interface {
	// Shared returns the sets, of two or more controllers each, that were found
	// to share a bottleneck, and a number that rises whenever they change. The
	// sets are valid until the next call of a controller.
	Shared() (sets [][]Controller, version uint64)
}

const (
	// Of the last sbdMemory verdicts a pair must have been grouped in sbdStable
	// to count as sharing, and does until it is in no more than sbdBroken. RFC
	// 8382, Section 3.3.2: a controller "MAY decide only to couple groups that
	// remain stable, say grouped together 90% of the time".
	sbdMemory = 10
	sbdStable = 9
	sbdBroken = 2
)

// detector finds shared bottlenecks by RFC 8382, and earlier by marks where
// there are some.
//
// RFC 8382 compares statistics. Two bottlenecks that are alike, as parallel
// links are, look like one to it; two subflows of one queue with a few windows
// in it often differ by more than its thresholds. So the mean delays of the
// intervals are also correlated, which is our own addition: a pair that
// moves together closely is grouped whatever its statistics, and one that RFC 8382
// groups only if it does so loosely.
type detector struct {
	flows   []*watched
	sbdAt   time.Duration // when the present interval began; 0 = not yet
	sbdEnds int           // intervals ended
	binAt   time.Duration
	binEnds int
	sets    [][]Controller
	version uint64
}

// watched is one subflow of a detector.
type watched struct {
	c     Controller
	pairs []pairing // with the flows before it in detector.flows

	// nil until there is another flow and an ACK, which many connections never see.
	*observed
}

// observed is what is known of a subflow that may share a bottleneck.
type observed struct {
	sbd   sbdFlow
	marks markFlow
	rtt   time.Duration
}

// start begins to observe flows.
func (d *detector) start(now time.Duration) {
	d.sbdAt, d.binAt = now, now
	for _, w := range d.flows {
		if w.observed == nil {
			w.observed = &observed{}
		}
	}
}

// pairing is what is known of two subflows.
type pairing struct {
	verdicts uint16 // of RFC 8382, latest last: bits
	known    int    // how many there were, up to sbdMemory
	delays   bool   // what they say
	row      int    // verdicts by marks in a row: agreeing ones positive, others negative
	marks    bool   // what the last row of markInRow said
}

// shared reports whether they share a bottleneck as far as is known.
func (p *pairing) shared() bool { return p.marks || p.delays }

// judge adds a verdict of RFC 8382.
func (p *pairing) judge(grouped bool) {
	p.verdicts <<= 1
	if grouped {
		p.verdicts |= 1
	}
	p.known = min(p.known+1, sbdMemory)
	const mask = 1<<sbdMemory - 1
	switch n := bits.OnesCount16(p.verdicts & mask); {
	case n >= sbdStable:
		p.delays = true
	case n <= sbdBroken:
		p.delays = false
	}
}

// judged reports whether there was a verdict on them at all.
func (p *pairing) judged() bool { return p.known >= sbdMemory || p.marks }

func (d *detector) add(c Controller) *watched {
	w := &watched{c: c, pairs: make([]pairing, len(d.flows))}
	if d.sbdAt != 0 {
		w.observed = &observed{}
	}
	d.flows = append(d.flows, w)
	return w
}

func (d *detector) remove(c Controller) {
	at := slices.IndexFunc(d.flows, func(w *watched) bool { return w.c == c })
	if at < 0 {
		return
	}
	d.flows = slices.Delete(d.flows, at, at+1)
	for _, w := range d.flows[at:] {
		w.pairs = slices.Delete(w.pairs, at, at+1)
	}
	d.regroup()
}

// observe takes an ACK of a flow and reports whether a verdict was reached,
// the same as before or not.
func (d *detector) observe(w *watched, s *Sample) bool {
	if len(d.flows) < 2 {
		return false
	}
	if d.sbdAt == 0 {
		d.start(s.Now)
	}
	w.sbd.observe(s)
	w.marks.observe(s)
	w.rtt = s.SRTT
	verdict := false
	if s.Now-d.sbdAt >= sbdInterval {
		d.sbdAt = s.Now
		verdict = d.endInterval()
	}
	if s.Now-d.binAt >= d.bin() {
		d.binAt = s.Now
		verdict = d.endBin() || verdict
	}
	if verdict {
		d.regroup()
	}
	return verdict
}

// bin returns how long a bin lasts: the longest round trip.
func (d *detector) bin() time.Duration {
	most := markBinFloor
	for _, w := range d.flows {
		most = max(most, w.rtt)
	}
	return most
}

// endInterval ends an interval of RFC 8382.
func (d *detector) endInterval() bool {
	d.sbdEnds++
	var ready []*sbdFlow
	for _, w := range d.flows {
		w.sbd.end()
		if w.sbd.count >= sbdFirst {
			ready = append(ready, &w.sbd)
		}
	}
	if len(ready) < 2 {
		return false
	}
	groups := sbdGroups(slices.Clone(ready))
	of := func(f *sbdFlow) int {
		return slices.IndexFunc(groups, func(g []*sbdFlow) bool { return slices.Contains(g, f) })
	}
	for i, w := range d.flows {
		for j := range i {
			o := d.flows[j]
			if w.sbd.count < sbdFirst || o.sbd.count < sbdFirst {
				continue
			}
			w.pairs[j].judge(w.sbd.shares(&o.sbd, of(&w.sbd), of(&o.sbd)))
		}
	}
	return true
}

// endBin ends a bin of the detector by marks.
func (d *detector) endBin() bool {
	for _, w := range d.flows {
		w.marks.end(d.binEnds)
	}
	d.binEnds++
	if d.binEnds < markBins || d.binEnds%markEvery != 0 {
		return false
	}
	for i, w := range d.flows {
		for j := range i {
			p := &w.pairs[j]
			if w.marks.agrees(&d.flows[j].marks) {
				p.row = max(p.row, 0) + 1
			} else {
				p.row = min(p.row, 0) - 1
			}
			if p.row >= markInRow || p.row <= -markInRow {
				p.marks = p.row > 0
			}
		}
	}
	return true
}

// regroup makes the sets of those that share a bottleneck.
func (d *detector) regroup() {
	sets := slices.DeleteFunc(d.sortBy((*pairing).shared), func(s []Controller) bool { return len(s) == 1 })
	if !slices.EqualFunc(sets, d.sets, func(a, b []Controller) bool { return slices.Equal(a, b) }) {
		d.sets = sets
		d.version++
	}
}

// sortBy makes sets of all controllers: of those that pairs are together by.
func (d *detector) sortBy(together func(*pairing) bool) [][]Controller {
	var sets [][]Controller
	placed := make([]bool, len(d.flows))
	for i, w := range d.flows {
		if placed[i] {
			continue
		}
		set := []Controller{w.c}
		for k := i + 1; k < len(d.flows); k++ {
			if !placed[k] && together(&d.flows[k].pairs[i]) {
				placed[k] = true
				set = append(set, d.flows[k].c)
			}
		}
		sets = append(sets, set)
	}
	return sets
}

// Shared implements BottleneckObserver.
func (d *detector) Shared() ([][]Controller, uint64) { return d.sets, d.version }
