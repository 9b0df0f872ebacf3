package pathmgr

import (
	"math"
	"net/netip"
	"slices"
	"time"
)

// FreewayConfig are the options of the policy "freeway".
type FreewayConfig struct {
	// Mouse is the size in bytes up to which a flow is a mouse; longer ones are
	// elephants. 0 means 100 KB of 1000 bytes.
	Mouse int64
	// Deadline is how long mice may wait in a queue; 99 % of them are to make
	// it. 0 means 50 ms.
	Deadline time.Duration
	// Rate returns the rate of the link of a local address in bytes/s. Nil
	// means what the host last measured between the addresses of a subflow.
	Rate func(local netip.Addr) float64
}

const (
	freewayMouse    = 100_000
	freewayDeadline = 50 * time.Millisecond
	freewayLoop     = 100 * time.Millisecond
	freewayGain     = 0.25             // of a loop's figures in their moving averages
	freewayLook     = time.Second      // between two looks at a mouse
	freewayForget   = 3 * freewayLoop  // an elephant that has not been heard of is gone
	freewayIdle     = 64 * freewayLoop // after so long without a flow all is forgotten
)

// MeanWait returns the mean time in seconds that arrivals wait in an M/G/1
// queue (Pollaczek and Khinchine): lambda E[S^2] / (2 (1 - rho)), with lambda
// arrivals a second whose service times have this mean in seconds and this mean
// square.
func MeanWait(lambda, mean, square float64) float64 {
	rho := lambda * mean
	if rho >= 1 {
		return math.Inf(1)
	}
	return lambda * square / (2 * (1 - rho))
}

// isolate is adaptive path isolation for mice and elephants ("Freeway": Wang,
// Sun, Salamatian and Li, IEEE TNSM 13(1), 2016). The links of the host are
// parted into a low-latency set for mice and a high-throughput set for
// elephants, at least one in each: a mouse takes a link of the first by a hash,
// an elephant the one of the second with the fewest elephants. Ten times a
// second the mean wait of mice is estimated as that of an M/G/1 queue. When it
// is above the bound, the elephants' least loaded link is given to the mice;
// when it is below half of that, the mice give the latest one back.
//
// Only the abstract of the paper is known to us. This is a reconstruction:
//
//   - what arrives in the queue is what is written at once on a connection that
//     is a mouse, or all of it if its size is declared; the service time is its
//     bytes over the rate of the path;
//   - the bound has 1 % of waits beyond the deadline if they are exponential:
//     deadline over ln 100;
//   - a flow whose size nobody knows is a mouse until more was written than a
//     mouse has; its data moves then, as an elephant's does whose link is given
//     to the mice.
//
// A flow uses one link at a time, and takes another when that does not answer.
// Only the side that opened the connection moves it.
type isolate struct {
	cfg    FreewayConfig
	memory memory
	own    freeway // where nothing is shared with other connections

	id       uint64        // among the elephants of the host; 0 = a mouse
	noted    int64         // bytes that were noted as arrivals
	declared bool          // all are
	tick     time.Duration // that was asked for
}

// Freeway returns the policy "freeway" with options.
func Freeway(cfg FreewayConfig) Factory {
	if cfg.Mouse == 0 {
		cfg.Mouse = freewayMouse
	}
	if cfg.Deadline == 0 {
		cfg.Deadline = freewayDeadline
	}
	return func() Policy { return &isolate{cfg: cfg} }
}

// Handle implements Policy.
func (p *isolate) Handle(v *View, e Event, cmds []Command) []Command {
	f := p.freeway(v, e.Now)
	if e.Kind == ChooseInitial {
		return p.choose(v, e.Remote, e.Now, f, cmds)
	}
	cmds, look := p.memory.begin(v, &e, cmds)
	switch {
	case !v.Active && look:
		return p.memory.announce(v, cmds)
	case !v.Active || !p.memory.joinable:
		return cmds
	case e.Kind == Established:
		cmds = append(cmds, Command{Verb: Measure})
	case e.Kind == SubflowUp:
		return p.leave(v, e.Subflow, cmds)
	}
	if p.elephant(v) {
		return p.move(v, e.Now, f, cmds)
	}
	p.arrive(v, f)
	if silent(v) {
		cmds = p.open(v, e.Now, f, f.mice(p.others(v, e.Now, f)), cmds)
	}
	if v.Size == 0 {
		cmds = append(cmds, Command{Verb: Watch, Bytes: v.Written + 1})
	}
	if p.tick <= e.Now && v.Written > v.Acked {
		p.tick = e.Now + freewayLook
		return append(cmds, Command{Verb: Wake, At: p.tick})
	}
	if p.tick > e.Now {
		return cmds
	}
	return p.memory.rest(e.Now, cmds)
}

// silent reports whether no subflow answers, or there is none.
func silent(v *View) bool {
	return !slices.ContainsFunc(v.Subflows, func(s Subflow) bool { return !s.Stale })
}

// freeway returns what the connections of the host know together, up to date.
func (p *isolate) freeway(v *View, now time.Duration) *freeway {
	type key struct{}
	f := &p.own
	if v.Shared != nil {
		shared, ok := v.Shared[key{}].(*freeway)
		if !ok {
			shared = new(freeway)
			v.Shared[key{}] = shared
		}
		f = shared
	}
	f.follow(v.Locals)
	f.run(now, p.cfg.Deadline.Seconds()/math.Log(100))
	return f
}

func (p *isolate) elephant(v *View) bool { return max(v.Size, v.Written) > p.cfg.Mouse }

// lanes returns the links over which a new connection can go to an address.
func (p *isolate) lanes(v *View, f *freeway, remote netip.AddrPort) []*lane {
	return f.those(func(l *lane) bool {
		return slices.ContainsFunc(v.Locals, func(o Local) bool {
			return laneName(o) == l.name && pairOf(o.Addr, remote).possible(v.Routable)
		})
	})
}

// others returns the links that the connection does not use and can try now.
func (p *isolate) others(v *View, now time.Duration, f *freeway) []*lane {
	var usable []*lane
	p.memory.pairs(v, now, func(c candidate) { usable = append(usable, f.lane(v, c.pair.local)) })
	return f.those(func(l *lane) bool {
		return slices.Contains(usable, l) && !slices.ContainsFunc(v.Subflows, func(s Subflow) bool { return f.lane(v, s.Local.Addr()) == l })
	})
}

// choose begins a connection on the link that it deserves.
func (p *isolate) choose(v *View, remote netip.AddrPort, now time.Duration, f *freeway, cmds []Command) []Command {
	at := f.mice
	if p.elephant(v) {
		at = f.elephantsLane
	}
	to := at(p.lanes(v, f, remote))
	if to != nil && p.elephant(v) {
		to.hears(p.number(f), now)
	}
	for _, l := range v.Locals {
		c := candidate{pair: pairOf(l.Addr, remote), backup: l.Backup}
		if to != nil && laneName(l) == to.name && c.pair.possible(v.Routable) {
			return append(cmds, c.command())
		}
	}
	return cmds
}

// arrive notes what was written since the last time as an arrival.
func (p *isolate) arrive(v *View, f *freeway) {
	bytes := v.Written - p.noted
	if v.Size > 0 && !p.declared {
		bytes, p.declared = v.Size-p.noted, true
	}
	if bytes <= 0 || len(v.Subflows) == 0 || v.Size > 0 && p.noted >= v.Size {
		return
	}
	p.noted += bytes
	s, rate := &v.Subflows[0], 0.0
	switch local, remote := s.Local.Addr(), s.Remote.Addr(); {
	case p.cfg.Rate != nil:
		rate = p.cfg.Rate(local)
	case v.Measured != nil:
		rate = v.Measured(local, remote).Rate
	}
	f.arrivals++
	if rate > 0 {
		service := float64(bytes) / rate
		f.served++
		f.sum += service
		f.squares += service * service
	}
}

// move brings an elephant to the elephants' links and keeps it in their list.
func (p *isolate) move(v *View, now time.Duration, f *freeway, cmds []Command) []Command {
	if p.id == 0 {
		p.tick = 0 // that of a mouse comes too late
	}
	on := f.laneOf(v)
	if on == nil || on.low || silent(v) {
		if to := f.elephantsLane(p.others(v, now, f)); to != nil && (!to.low || on == nil || silent(v)) {
			on = to
			cmds = p.open(v, now, f, to, cmds)
		}
	}
	if on != nil {
		on.hears(p.number(f), now)
	}
	if p.tick <= now {
		p.tick = now + freewayLoop
		cmds = append(cmds, Command{Verb: Wake, At: p.tick})
	}
	return cmds
}

// number returns the number of the flow among the elephants.
func (p *isolate) number(f *freeway) uint64 {
	if p.id == 0 {
		f.ids++
		p.id = f.ids
	}
	return p.id
}

// open opens a subflow on a link.
func (p *isolate) open(v *View, now time.Duration, f *freeway, to *lane, cmds []Command) []Command {
	if to == nil || v.room() == 0 {
		return cmds
	}
	opened := false
	p.memory.pairs(v, now, func(c candidate) {
		if !opened && f.lane(v, c.pair.local) == to {
			opened = true
			cmds = append(cmds, c.command())
		}
	})
	return cmds
}

// leave closes the others when the subflow that an elephant moves to is there.
func (p *isolate) leave(v *View, up int, cmds []Command) []Command {
	for i := range v.Subflows {
		if s := &v.Subflows[i]; p.id != 0 && s.ID != up {
			cmds = append(cmds, Command{Verb: CloseSubflow, Subflow: s.ID})
		}
	}
	return cmds
}
