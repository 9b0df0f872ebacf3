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
// there are some. Its verdicts allocate nothing unless they change something.
//
// RFC 8382 compares statistics. Two bottlenecks that are alike, as parallel
// links are, look like one to it; two subflows of one queue with a few windows
// in it often differ by more than its thresholds. So the delays are also
// correlated from round trip to round trip, which is our own addition: a pair
// that moves together closely is grouped whatever its statistics, and one that
// RFC 8382 groups only if it does so loosely.
type detector struct {
	flows       []*watched
	*comparison // nil before there are two
}

// comparison is how far a detector has come.
type comparison struct {
	sbdAt   time.Duration // when the present interval began; 0 = not yet
	delayAt time.Duration // when the present bin of delays began
	markAt  time.Duration // when the present bin of marks began
	markEnd int           // bins of marks ended
	labels  []int         // see label
	through []*sbdFlow    // see sbdGroups
	sets    [][]Controller
	version uint64
}

// watched is one subflow of a detector.
type watched struct {
	c     Controller
	set   int       // the label by which it is in detector.sets
	pairs []pairing // with the flows before it in detector.flows

	// nil until there is another flow and an ACK, which many connections never see.
	*observed
}

// observed is what is known of a subflow that may share a bottleneck.
type observed struct {
	sbd   sbdFlow
	delay binned // seconds, one way
	marks binned // of bytes
	rtt   time.Duration
}

// start begins to observe flows.
func (d *detector) start(now time.Duration) {
	d.sbdAt, d.delayAt, d.markAt = now, now, now
	for i, w := range d.flows {
		if w.observed == nil {
			w.observed, w.pairs = &observed{}, make([]pairing, i)
		}
	}
}

// pairing returns what is known of w and the j-th flow before it.
func (w *watched) pairing(j int) *pairing {
	if w.pairs == nil {
		return &unknown
	}
	return &w.pairs[j]
}

// unknown is a pairing of which nothing is known. Nobody changes it.
var unknown pairing

// pairing is what is known of two subflows.
type pairing struct {
	delay    moments
	verdicts uint16 // by delays, latest last: bits
	known    int    // how many there were, up to sbdMemory
	delays   bool   // what they say
	mark     moments
	row      int  // verdicts by marks in a row: agreeing ones positive, others negative
	marks    bool // what the last row of markInRow said
}

// shared reports whether they share a bottleneck as far as is known.
func (p *pairing) shared() bool { return p.marks || p.delays }

// judge adds a verdict by delays.
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

// add begins to watch a subflow, in memory that is its controller's.
func (d *detector) add(c Controller, w *watched) {
	*w = watched{c: c, set: len(d.flows)}
	d.flows = append(d.flows, w)
	if d.comparison != nil && d.sbdAt != 0 {
		w.observed, w.pairs = &observed{}, make([]pairing, len(d.flows)-1)
	}
	if len(d.flows) == 1 {
		return
	}
	if d.comparison == nil {
		d.comparison = &comparison{}
	}
	d.labels, d.through = make([]int, len(d.flows)), make([]*sbdFlow, len(d.flows))
}

func (d *detector) remove(c Controller) {
	at := slices.IndexFunc(d.flows, func(w *watched) bool { return w.c == c })
	if at < 0 {
		return
	}
	d.flows = slices.Delete(d.flows, at, at+1)
	for _, w := range d.flows[at:] {
		if w.pairs != nil {
			w.pairs = slices.Delete(w.pairs, at, at+1)
		}
	}
	if d.comparison != nil {
		d.rebuild(d.label((*pairing).shared))
	}
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
	if s.OneWayDelay > 0 {
		w.delay.least(s.OneWayDelay.Seconds())
	}
	w.marks.add(float64(s.Marked), float64(s.Delivered))
	w.rtt = s.SRTT
	verdict := false
	if s.Now-d.delayAt >= d.roundTrip(delayBinFloor) {
		d.delayAt = s.Now
		d.endDelays()
	}
	if s.Now-d.sbdAt >= sbdInterval {
		d.sbdAt = s.Now
		verdict = d.endInterval()
	}
	if s.Now-d.markAt >= d.roundTrip(markBinFloor) {
		d.markAt = s.Now
		verdict = d.endMarks() || verdict
	}
	if verdict {
		d.regroup()
	}
	return verdict
}

// roundTrip returns the longest round trip, or floor if that is longer.
func (d *detector) roundTrip(floor time.Duration) time.Duration {
	most := floor
	for _, w := range d.flows {
		most = max(most, w.rtt)
	}
	return most
}

// eachPair calls f with each two flows and what is known of them.
func (d *detector) eachPair(f func(a, b *watched, p *pairing)) {
	for i, w := range d.flows {
		for j := range i {
			f(w, d.flows[j], &w.pairs[j])
		}
	}
}

// endDelays ends a bin of delays.
func (d *detector) endDelays() {
	d.eachPair(func(a, b *watched, p *pairing) {
		if a.delay.n > 0 && b.delay.n > 0 {
			p.delay.add(a.delay.sum, b.delay.sum, delayMemory)
		}
	})
	for _, w := range d.flows {
		w.delay = binned{}
	}
}

// endInterval ends an interval of RFC 8382.
func (d *detector) endInterval() bool {
	ready := d.through[:0]
	for _, w := range d.flows {
		w.sbd.end()
		if w.sbd.count >= sbdFirst {
			ready = append(ready, &w.sbd)
		}
	}
	if len(ready) < 2 {
		return false
	}
	sbdGroups(ready)
	d.eachPair(func(a, b *watched, p *pairing) {
		if a.sbd.count >= sbdFirst && b.sbd.count >= sbdFirst {
			p.judge(p.delay.together(a.sbd.group, b.sbd.group))
		}
	})
	return true
}

// endMarks ends a bin of marks.
func (d *detector) endMarks() bool {
	d.eachPair(func(a, b *watched, p *pairing) {
		if a.marks.n > 0 && b.marks.n > 0 {
			p.mark.add(a.marks.mean(), b.marks.mean(), markMemory)
		}
	})
	for _, w := range d.flows {
		w.marks = binned{}
	}
	if d.markEnd++; d.markEnd%markEvery != 0 {
		return false
	}
	verdict := false
	d.eachPair(func(_, _ *watched, p *pairing) {
		if p.mark.n < markFirst {
			return
		}
		verdict = true
		if p.mark.marked() {
			p.row = max(p.row, 0) + 1
		} else {
			p.row = min(p.row, 0) - 1
		}
		if p.row >= markInRow || p.row <= -markInRow {
			p.marks = p.row > 0
		}
	})
	return verdict
}

// alone are the labels while there is one flow.
var alone = []int{0}

// label labels the flows: those that pairs are together by, directly or over
// others, have the same one, the index of the first of them. It is valid until
// the next call.
func (d *detector) label(together func(*pairing) bool) []int {
	if d.comparison == nil {
		return alone[:len(d.flows)]
	}
	labels := d.labels[:len(d.flows)]
	for i, w := range d.flows {
		labels[i] = i
		for j := range i {
			from, to := max(labels[i], labels[j]), min(labels[i], labels[j])
			if from == to || !together(w.pairing(j)) {
				continue
			}
			for k := range i + 1 {
				if labels[k] == from {
					labels[k] = to
				}
			}
		}
	}
	return labels
}

// regroup looks whether the sets of those that share a bottleneck changed.
func (d *detector) regroup() {
	labels := d.label((*pairing).shared)
	for i, w := range d.flows {
		if w.set != labels[i] {
			d.rebuild(labels)
			return
		}
	}
}

// rebuild makes the sets of those that share a bottleneck.
func (d *detector) rebuild(labels []int) {
	var sets [][]Controller
	for i := range d.flows {
		var set []Controller
		for j, w := range d.flows {
			if labels[j] == i {
				w.set = i
				set = append(set, w.c)
			}
		}
		if len(set) > 1 {
			sets = append(sets, set)
		}
	}
	if !slices.EqualFunc(sets, d.sets, func(a, b []Controller) bool { return slices.Equal(a, b) }) {
		d.sets = sets
		d.version++
	}
}

// Shared implements BottleneckObserver.
func (d *detector) Shared() ([][]Controller, uint64) {
	if d.comparison == nil {
		return nil, 0
	}
	return d.sets, d.version
}
