package pathmgr

import (
	"cmp"
	"net/netip"
	"slices"
	"time"
)

// FlowSizeConfig are the options of the policy "flowsize".
type FlowSizeConfig struct {
	// Classes are the sizes in bytes up to which a flow has one path, two and
	// three; longer ones have all. A flow of exactly that size belongs to the
	// lower class. Zeros mean 100, 300 and 800 KB of 1000 bytes.
	Classes [3]int64
	// ReprobeAfter is how old the measurement of a path may be before a
	// connection measures it again by a subflow that carries nothing; 0 means
	// one second, negative never.
	ReprobeAfter time.Duration
	// Jitter, if set, returns random numbers from which each RTT is lengthened
	// by up to an eighth before paths are compared, lest all flows that begin
	// between two measurements choose the same. The paper has none.
	Jitter func() uint64
	// Backlog, if set, returns how long what was lately placed on a path will
	// take there, which is added to its RTT before paths are compared: that RTT
	// knows nothing yet of flows that have just begun. The paper has none.
	Backlog func(local, remote netip.Addr) time.Duration
}

// DefaultFlowSizeClasses are those of the paper, in bytes.
var DefaultFlowSizeClasses = [3]int64{100_000, 300_000, 800_000}

// flowSize is MPTCP-FSFS: a flow of class G0 to G3 has subflows on the one, two,
// three or all paths that have the least RTTs when it is decided, by the host's
// table of measurements; it begins on the fastest. A flow of unknown size begins
// as G0 and is promoted by what was written. Paths that nobody has measured
// lately are probed by a subflow for backup, which is closed once it is
// established.
//
// Only the side that opened the connection opens subflows. What is open is not
// closed because another path has become faster.
type flowSize struct {
	cfg    FlowSizeConfig
	memory memory
	probes []pair // under way
}

// FlowSize returns the policy "flowsize" with options.
func FlowSize(cfg FlowSizeConfig) Factory {
	if cfg.Classes == ([3]int64{}) {
		cfg.Classes = DefaultFlowSizeClasses
	}
	if cfg.ReprobeAfter == 0 {
		cfg.ReprobeAfter = time.Second
	}
	return func() Policy { return &flowSize{cfg: cfg} }
}

// paths returns how many paths a flow of so many bytes deserves, of n; and from
// how many bytes on it deserves more, 0 = never.
func (f *flowSize) paths(bytes int64, n int) (k int, more int64) {
	for i, most := range f.cfg.Classes {
		if bytes <= most {
			return min(i+1, n), most + 1
		}
	}
	return n, 0
}

// Handle implements Policy.
func (f *flowSize) Handle(v *View, e Event, cmds []Command) []Command {
	if e.Kind == ChooseInitial {
		return f.choose(v, e.Remote, cmds)
	}
	cmds, look := f.memory.begin(v, &e, cmds)
	if e.Kind == Established {
		cmds = append(cmds, Command{Verb: Measure})
	}
	if e.Kind == SubflowUp || e.Kind == SubflowLost {
		at := pairOf(e.Local, e.Remote)
		if slices.Contains(f.probes, at) {
			f.probes = slices.DeleteFunc(f.probes, func(p pair) bool { return p == at })
			if e.Kind == SubflowUp && len(v.Subflows) > 1 {
				cmds = append(cmds, Command{Verb: CloseSubflow, Subflow: e.Subflow})
			}
		}
	}
	switch {
	case !v.Active && look:
		return f.memory.announce(v, cmds)
	case v.Active && f.memory.joinable && (look || e.Kind == DataQueued):
		return f.memory.rest(e.Now, f.open(v, e.Now, cmds))
	}
	return cmds
}

// ranked is a pair of addresses and what is known of the path.
type ranked struct {
	candidate
	srtt time.Duration // 0 = unknown
	old  bool          // nobody has measured it lately, or tried to
}

// rank orders paths: those that are not for backup first, then by RTT; unknown
// ones are last, and equal ones keep their order.
func (f *flowSize) rank(v *View, all []ranked) {
	for i := range all {
		r := &all[i]
		if v.Measured != nil {
			var age time.Duration
			m := v.Measured(r.pair.local, r.pair.remote.Addr())
			r.srtt, age = m.SRTT, m.Age
			r.old = f.cfg.ReprobeAfter > 0 && (r.srtt == 0 && age == 0 || age > f.cfg.ReprobeAfter)
		}
		if f.cfg.Backlog != nil && r.srtt > 0 {
			r.srtt += f.cfg.Backlog(r.pair.local, r.pair.remote.Addr())
		}
		if f.cfg.Jitter != nil {
			r.srtt += time.Duration(f.cfg.Jitter() % uint64(r.srtt/8+1))
		}
	}
	slices.SortStableFunc(all, func(a, b ranked) int {
		switch {
		case a.backup != b.backup && a.backup:
			return 1
		case a.backup != b.backup:
			return -1
		case a.srtt == 0 || b.srtt == 0:
			return cmp.Compare(b.srtt, a.srtt)
		}
		return cmp.Compare(a.srtt, b.srtt)
	})
}

// choose begins a connection on the fastest path to remote.
func (f *flowSize) choose(v *View, remote netip.AddrPort, cmds []Command) []Command {
	var all []ranked
	for _, l := range v.Locals {
		if p := pairOf(l.Addr, remote); p.possible(v.Routable) {
			all = append(all, ranked{candidate: candidate{pair: p, backup: l.Backup}})
		}
	}
	f.rank(v, all)
	if len(all) == 0 {
		return cmds
	}
	return append(cmds, all[0].command())
}

// open opens what the flow deserves and probes what nobody knows.
func (f *flowSize) open(v *View, now time.Duration, cmds []Command) []Command {
	var all []ranked
	f.memory.pairs(v, now, func(c candidate) { all = append(all, ranked{candidate: c}) })
	f.rank(v, all)
	size := max(v.Size, v.Written)
	k, more := f.paths(size, max(len(all), len(v.Subflows)))
	if more > 0 && v.Size < more {
		cmds = append(cmds, Command{Verb: Watch, Bytes: more})
	}
	present := make([]pair, 0, DefaultSubflows)
	for i := range v.Subflows {
		p := pairOf(v.Subflows[i].Local.Addr(), v.Subflows[i].Remote)
		if present = append(present, p); !slices.Contains(f.probes, p) {
			k--
		}
	}
	room := v.room()
	for i := range all {
		c := &all[i]
		switch {
		case slices.Contains(present, c.pair):
			continue
		case room == 0 && k > 0:
			return append(cmds, c.withheld())
		case room == 0:
			continue
		case k > 0:
			cmds = append(cmds, c.command())
			k--
		case c.old:
			probe := c.command()
			probe.Backup = true
			f.probes = append(f.probes, c.pair)
			cmds = append(cmds, probe)
		default:
			continue
		}
		present = append(present, c.pair)
		room--
	}
	return cmds
}
