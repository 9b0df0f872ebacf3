package pathmgr

import (
	"net/netip"
	"slices"
	"time"
)

// freeway is what the connections of a host that isolate mice from elephants
// know together.
type freeway struct {
	lanes []lane // in the order in which they were first seen
	next  time.Duration
	ids   uint64 // of elephants
	mouse uint64 // how many mice chose a link

	arrivals, served int     // since the last loop, and those of known service time
	sum, squares     float64 // of service times, in seconds and their squares

	lambda       float64 // mice a second on all links of mice, smoothed
	mean, square float64 // of service times, smoothed
	moved        uint64
}

// lane is a link of the host.
type lane struct {
	name      string
	low       bool   // for mice
	since     uint64 // the moves before it was given to them
	elephants []elephant
}

// elephant is a flow that was heard of.
type elephant struct {
	id    uint64
	until time.Duration
}

func laneName(l Local) string {
	if l.Link != "" {
		return l.Link
	}
	return l.Addr.Unmap().String()
}

// follow keeps the lanes those of the host's addresses, without links that are
// for backup as long as there are others. The first is for mice, all others at
// first for elephants.
func (f *freeway) follow(locals []Local) {
	wanted := func(l Local) bool {
		return !l.Backup || !slices.ContainsFunc(locals, func(o Local) bool { return !o.Backup })
	}
	f.lanes = slices.DeleteFunc(f.lanes, func(x lane) bool {
		return !slices.ContainsFunc(locals, func(l Local) bool { return wanted(l) && laneName(l) == x.name })
	})
	for _, l := range locals {
		if wanted(l) && !slices.ContainsFunc(f.lanes, func(x lane) bool { return laneName(l) == x.name }) {
			f.lanes = append(f.lanes, lane{name: laneName(l)})
		}
	}
	switch low := f.count(); {
	case low == 0 && len(f.lanes) > 0:
		f.lanes[0].low = true
	case low == len(f.lanes) && low > 1:
		f.lanes[low-1].low = false
	}
}

// count returns how many lanes are for mice.
func (f *freeway) count() (n int) {
	for i := range f.lanes {
		if f.lanes[i].low {
			n++
		}
	}
	return n
}

// run makes up for the loops that are due.
func (f *freeway) run(now time.Duration, bound float64) {
	if now-f.next > freewayIdle {
		f.next = now - freewayIdle
	}
	for ; f.next+freewayLoop <= now; f.next += freewayLoop {
		for i := range f.lanes {
			l := &f.lanes[i]
			l.elephants = slices.DeleteFunc(l.elephants, func(e elephant) bool { return e.until < f.next })
		}
		f.smooth()
		f.balance(bound)
	}
}

// smooth takes over what came since the last loop.
func (f *freeway) smooth() {
	f.lambda += freewayGain * (float64(f.arrivals)/freewayLoop.Seconds() - f.lambda)
	if n := float64(f.served); n > 0 {
		gain := freewayGain
		if f.mean == 0 {
			gain = 1
		}
		f.mean += gain * (f.sum/n - f.mean)
		f.square += gain * (f.squares/n - f.square)
	}
	f.arrivals, f.served, f.sum, f.squares = 0, 0, 0, 0
}

// balance moves a lane between the sets if the mice's wait asks for it.
func (f *freeway) balance(bound float64) {
	low := f.count()
	if low == 0 {
		return
	}
	switch wait := MeanWait(f.lambda/float64(low), f.mean, f.square); {
	case wait > bound && len(f.lanes)-low > 1:
		l := f.elephantsLane(f.all())
		f.moved++
		l.low, l.since = true, f.moved
	case wait < bound/2 && low > 1:
		var latest *lane
		for _, l := range f.all() {
			if l.low && (latest == nil || l.since > latest.since) {
				latest = l
			}
		}
		latest.low = false
	}
}

func (f *freeway) all() []*lane { return f.those(func(*lane) bool { return true }) }

// those returns the lanes for which is reports true.
func (f *freeway) those(is func(*lane) bool) (all []*lane) {
	for i := range f.lanes {
		if is(&f.lanes[i]) {
			all = append(all, &f.lanes[i])
		}
	}
	return all
}

// mice returns the lane of the next mouse, of those that it can use: one that
// is for mice if possible.
func (f *freeway) mice(usable []*lane) *lane {
	if low := slices.DeleteFunc(slices.Clone(usable), func(l *lane) bool { return !l.low }); len(low) > 0 {
		usable = low
	}
	if len(usable) == 0 {
		return nil
	}
	f.mouse++
	return usable[mix(f.mouse)%uint64(len(usable))]
}

// mix is the output function of SplitMix64.
func mix(z uint64) uint64 {
	z *= 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// elephantsLane returns the lane with the fewest elephants, of those that one
// can use: one that is for elephants if possible.
func (f *freeway) elephantsLane(usable []*lane) (best *lane) {
	for _, l := range usable {
		switch {
		case best == nil, best.low && !l.low:
			best = l
		case best.low == l.low && len(l.elephants) < len(best.elephants):
			best = l
		}
	}
	return best
}

// lane returns the lane of an address, nil if it is none.
func (f *freeway) lane(v *View, local netip.Addr) *lane {
	for _, l := range v.Locals {
		if l.Addr.Unmap() != local.Unmap() {
			continue
		}
		for i := range f.lanes {
			if f.lanes[i].name == laneName(l) {
				return &f.lanes[i]
			}
		}
	}
	return nil
}

// laneOf returns the lane of the connection's subflows, one for elephants if
// any is.
func (f *freeway) laneOf(v *View) (on *lane) {
	for i := range v.Subflows {
		if l := f.lane(v, v.Subflows[i].Local.Addr()); l != nil && (on == nil || on.low) {
			on = l
		}
	}
	return on
}

// hears keeps an elephant among those of the lane.
func (l *lane) hears(id uint64, now time.Duration) {
	at := slices.IndexFunc(l.elephants, func(e elephant) bool { return e.id == id })
	if at < 0 {
		at = len(l.elephants)
		l.elephants = append(l.elephants, elephant{id: id})
	}
	l.elephants[at].until = now + freewayForget
}
