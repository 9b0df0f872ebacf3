package pathmgr

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/gomptcp/gomptcp/internal/reason"
)

// Elimination is the path management of MPTCP-D (Zhao, Liu, Wang and Xu, INFOCOM
// 2017): of subflows that share a link all but one cost energy and gain
// nothing, so they are given up. The abstract of the paper, which is all that is
// known to us, says no more; everything below is our own reconstruction.
//
// Subflows share a link if PathOf says so, or else if the congestion control
// found that out (event SharedBottleneck; cc's "mptcpd", "default" and "coupled-bbr"
// do). The one
// with the highest rate is kept. The others are demoted by MP_PRIO, and after two
// seconds closed with the reason "unacceptable performance", what they had in
// flight being sent again on the others. What was only found out may be wrong: the
// slowest is demoted first and alone, and comes back to be left alone if over the
// next 64 round trips the connection carries a tenth less than over the 64 before.
// No subflow is opened between the same addresses for 30 s after either.
//
// In its first 64 round trips a connection keeps four subflows even if they
// share links: each brings an initial window, and short flows are over by then.
// Where the path is known, the one that is kept takes the place of the others, so
// that the connection gets of a link what all of them would have got (cc.Heir).
//
// Further subflows are opened only for long flows: of 100 KB or more to go if the
// size is known, or else once 100 KB were written. In slow start a second subflow
// saves a short flow one round trip and costs it the one of its handshake.
type Elimination struct {
	// Open makes the policy that opens subflows; nil means the full mesh.
	Open Factory
	// PathOf names the link that a subflow takes where it may be shared; an
	// empty name is one that nobody shares. Nil means that it is to be found out.
	PathOf func(local, remote netip.AddrPort) string
	// OpenAlways leaves the decision to open to Open.
	OpenAlways bool
}

const (
	eliminateAfter = 2 * time.Second  // between MP_PRIO and the end
	eliminateRest  = 30 * time.Second // before the same addresses are tried again
	eliminateLoss  = 0.9              // of the rate before; less brings a subflow back
	eliminateWatch = 64               // round trips until that is judged
	eliminateLeast = 20 * time.Millisecond
	eliminateYoung = 4       // subflows
	gateLong       = 100_000 // bytes of a flow that is worth further subflows
	gateLook       = 10 * time.Millisecond
)

// Factory makes the policy.
func (e Elimination) Factory() Factory {
	if e.Open == nil {
		e.Open = newFullMesh
	}
	return func() Policy { return &eliminate{Elimination: e, open: e.Open()} }
}

type eliminate struct {
	Elimination
	open     Policy
	openWake time.Duration // the Tick that open asked for; 0 = none
	wake     time.Duration // that the driver was asked for; 0 = none
	barred   bool          // open wanted a subflow that it was not let open
	grown    time.Duration // when the connection is not young any more
	spared   bool          // more would be given up if it were not
	sets     [][]int       // subflows that were found to share something
	setsAt   time.Duration // when
	meter    meter         // runs while something is to be demoted
	demoted  []demotion
	resting  []resting
	kept     []int // subflows that came back, left alone while their pair rests
}

// demotion is a subflow that stands by before it is closed.
type demotion struct {
	id     int
	at     time.Duration
	watch  time.Duration // when it is judged; 0 = it was, or needs not be
	before float64       // bytes/s of the whole connection
}

// meter measures what a connection carries.
type meter struct {
	from  time.Duration // 0 = it does not run
	until time.Duration
	acked int64 // bytes, when it began
}

func (m *meter) start(v *View, now, d time.Duration) { *m = meter{now, now + d, v.Acked} }

// rate returns bytes/s since the start.
func (m *meter) rate(v *View, now time.Duration) float64 {
	return float64(v.Acked-m.acked) / max(now-m.from, time.Millisecond).Seconds()
}

// resting is a pair of addresses that is left alone for a while.
type resting struct {
	pair  pair
	until time.Duration
}

// Handle implements Policy.
func (p *eliminate) Handle(v *View, e Event, cmds []Command) []Command {
	p.resting = slices.DeleteFunc(p.resting, func(r resting) bool { return r.until <= e.Now })
	if len(p.resting) == 0 {
		p.kept = nil
	}
	tick := e.Kind == Tick
	if tick {
		p.wake = 0
	}
	if !tick || p.openWake != 0 && p.openWake <= e.Now || p.barred {
		cmds = p.pass(v, e, cmds)
	}
	p.forget(v)
	switch e.Kind {
	case SharedBottleneck:
		p.found(e)
	case Established:
		p.grown = e.Now + eliminateLeast
		for _, s := range v.Subflows {
			p.grown = max(p.grown, e.Now+eliminateWatch*s.SRTT)
		}
	}
	cmds = p.judge(v, e.Now, cmds)
	switch {
	case p.PathOf == nil:
		cmds = p.demoteFound(v, e.Now, cmds)
	case v.Active && (e.Kind == SubflowUp || p.spared && e.Now >= p.grown):
		cmds = p.demoteKnown(v, e.Now, cmds)
	}
	return p.rest(e.Now, cmds)
}

// found keeps what the congestion control found out: the sets of one instant
// belong together.
func (p *eliminate) found(e Event) {
	if e.Now != p.setsAt {
		p.sets = p.sets[:0]
	}
	p.setsAt = e.Now
	if len(e.Group) > 1 {
		p.sets = append(p.sets, slices.Clone(e.Group))
	}
}

// pass shows an event to the policy that opens and lets through what the gate
// and the rest of 30 s allow.
func (p *eliminate) pass(v *View, e Event, cmds []Command) []Command {
	from := len(cmds)
	p.openWake, p.barred = 0, false
	cmds = p.open.Handle(v, e, cmds)
	kept := cmds[:from]
	for _, c := range cmds[from:] {
		switch {
		case c.Verb == Wake:
			p.openWake = c.At
			continue
		case c.Verb == OpenSubflow:
			to := pairOf(c.Local.Addr(), c.Remote)
			if slices.ContainsFunc(p.resting, func(r resting) bool { return r.pair == to }) {
				continue
			}
			if len(v.Subflows) > 0 && !p.pays(v) {
				p.barred = true
				continue
			}
		}
		kept = append(kept, c)
	}
	return kept
}

// pays reports whether the flow is long enough for more than one subflow.
func (p *eliminate) pays(v *View) bool {
	switch {
	case p.OpenAlways:
		return true
	case v.Size > 0:
		return v.Size-v.Acked >= gateLong
	}
	return v.Written >= gateLong
}

// forget drops demotions of subflows that are no more.
func (p *eliminate) forget(v *View) {
	p.demoted = slices.DeleteFunc(p.demoted, func(d demotion) bool {
		return !slices.ContainsFunc(v.Subflows, func(s Subflow) bool { return s.ID == d.id && s.Established })
	})
}

func (p *eliminate) isDemoted(id int) bool {
	return slices.ContainsFunc(p.demoted, func(d demotion) bool { return d.id == id })
}

// regular reports whether a subflow is in use and may be given up.
func (p *eliminate) regular(s *Subflow) bool {
	return s.Established && !s.Backup && !s.PeerBackup && !p.isDemoted(s.ID) && !slices.Contains(p.kept, s.ID)
}

// demoteKnown makes backups of all but the best subflow on each link, those of
// the fullest link first, as far as a young connection can spare them.
func (p *eliminate) demoteKnown(v *View, now time.Duration, cmds []Command) []Command {
	p.spared = false
	for {
		s, inUse := p.surplus(v)
		if s == nil {
			return cmds
		}
		if now < p.grown && inUse <= eliminateYoung {
			p.spared = true
			return cmds
		}
		p.demoted = append(p.demoted, demotion{id: s.ID, at: now})
		cmds = append(cmds, Command{Verb: SetBackup, Subflow: s.ID, Backup: true},
			Command{Verb: Bequeath, Subflow: s.ID, Heir: p.best(v, s)})
	}
}

// best returns the best subflow on the link of s.
func (p *eliminate) best(v *View, s *Subflow) int {
	best, path := s, p.PathOf(s.Local, s.Remote)
	for i := range v.Subflows {
		o := &v.Subflows[i]
		if p.regular(o) && better(o, best) && p.PathOf(o.Local, o.Remote) == path {
			best = o
		}
	}
	return best.ID
}

// surplus returns the worst subflow on the link that most subflows are on, nil
// if none is shared, and how many subflows are in use.
func (p *eliminate) surplus(v *View) (worst *Subflow, inUse int) {
	most := 1
	for i := range v.Subflows {
		if !p.regular(&v.Subflows[i]) {
			continue
		}
		inUse++
		path, n := p.PathOf(v.Subflows[i].Local, v.Subflows[i].Remote), 0
		if path == "" {
			continue
		}
		var last *Subflow
		for j := range v.Subflows {
			s := &v.Subflows[j]
			if !p.regular(s) || p.PathOf(s.Local, s.Remote) != path {
				continue
			}
			n++
			if last == nil || better(last, s) {
				last = s
			}
		}
		if n > most {
			worst, most = last, n
		}
	}
	return worst, inUse
}

// demoteFound makes a backup of the slowest subflow that was found to share
// something with a better one, unless another is being watched. What the
// connection carries is measured before.
func (p *eliminate) demoteFound(v *View, now time.Duration, cmds []Command) []Command {
	if slices.ContainsFunc(p.demoted, func(d demotion) bool { return d.watch != 0 }) {
		return cmds
	}
	s := p.spare(v)
	switch {
	case s == nil:
		p.meter = meter{}
		return cmds
	case p.meter.from == 0:
		p.meter.start(v, now, max(eliminateWatch*s.SRTT, eliminateLeast))
	}
	if now < p.meter.until {
		return cmds
	}
	d := demotion{id: s.ID, at: now, before: p.meter.rate(v, now)}
	p.meter.start(v, now, max(eliminateWatch*s.SRTT, eliminateLeast))
	d.watch = p.meter.until
	p.demoted = append(p.demoted, d)
	return append(cmds, Command{Verb: SetBackup, Subflow: s.ID, Backup: true})
}

// spare returns the slowest of the first set that more than one subflow in
// use is in; nil if there is none.
func (p *eliminate) spare(v *View) *Subflow {
	for _, set := range p.sets {
		var worst *Subflow
		n := 0
		for i := range v.Subflows {
			s := &v.Subflows[i]
			if !slices.Contains(set, s.ID) || !p.regular(s) {
				continue
			}
			n++
			if worst == nil || better(worst, s) {
				worst = s
			}
		}
		if n > 1 {
			return worst
		}
	}
	return nil
}

// better compares by rate, then by round trip, then by age.
func better(s, o *Subflow) bool {
	return cmp.Or(cmp.Compare(o.Rate, s.Rate), cmp.Compare(s.SRTT, o.SRTT), cmp.Compare(s.ID, o.ID)) < 0
}

// judge takes back what made the connection slower, and closes what has been
// demoted for long enough.
func (p *eliminate) judge(v *View, now time.Duration, cmds []Command) []Command {
	rate := p.meter.rate(v, now)
	over := func(d *demotion) bool {
		return d.watch != 0 && now >= d.watch && rate < eliminateLoss*d.before || now >= d.at+eliminateAfter
	}
	for i := range p.demoted {
		d := &p.demoted[i]
		if !over(d) {
			if d.watch != 0 && now >= d.watch {
				d.watch = 0
			}
			continue
		}
		at := slices.IndexFunc(v.Subflows, func(s Subflow) bool { return s.ID == d.id })
		s := &v.Subflows[at]
		p.resting = append(p.resting, resting{pairOf(s.Local.Addr(), s.Remote), now + eliminateRest})
		if now < d.at+eliminateAfter {
			p.kept = append(p.kept, d.id)
			p.meter = meter{}
			cmds = append(cmds, Command{Verb: SetBackup, Subflow: d.id})
			continue
		}
		cmds = append(cmds, Command{Verb: CloseSubflow, Subflow: d.id, Reset: reason.ResetPerformance})
	}
	p.demoted = slices.DeleteFunc(p.demoted, func(d demotion) bool { return over(&d) })
	return cmds
}

// rest asks for the next Tick.
func (p *eliminate) rest(now time.Duration, cmds []Command) []Command {
	at := p.openWake
	earlier := func(t time.Duration) {
		if at == 0 || t < at {
			at = t
		}
	}
	for _, d := range p.demoted {
		earlier(d.at + eliminateAfter)
		if d.watch != 0 {
			earlier(d.watch)
		}
	}
	if p.spared {
		earlier(p.grown)
	}
	if p.meter.from != 0 {
		earlier(p.meter.until)
	}
	if p.barred {
		earlier(now + gateLook)
	}
	if at == 0 || p.wake > now && p.wake <= at {
		return cmds
	}
	p.wake = at
	return append(cmds, Command{Verb: Wake, At: at})
}
