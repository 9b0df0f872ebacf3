package experiment

import (
	"errors"
	"maps"
	"math"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"time"

	"github.com/gomptcp/gomptcp/bench/figure"
	"github.com/gomptcp/gomptcp/bench/speed"
	"github.com/gomptcp/gomptcp/mptcp"
	"github.com/gomptcp/gomptcp/netstack"
)

func init() {
	Register(Experiment{
		Name:    "speed",
		Summary: "throughput, latency, dials and memory against gVisor's TCP and, as root, the kernel",
		Source:  "bench/README.md: measured in turn in one run, medians of the ratios of a round",
		Clocked: true, Seeds: 9, QuickSeeds: 1,
		Plan:   planSpeed,
		Reduce: reduceSpeed,
	})
}

// contender is a stack under test, by the name it has in keys.
type contender struct {
	name  string
	setup speed.Setup
}

// contendersOn returns gVisor's TCP, ours, and MPTCP over some numbers of
// paths and with DSS checksums, on a link.
func contendersOn(link netstack.PipeConfig, paths ...int) []contender {
	list := []contender{
		{"gvisor", speed.Setup{Link: link, GVisor: true}},
		{"tcp", speed.Setup{Link: link, MPTCP: &mptcp.Config{Plain: true}}},
	}
	for _, n := range paths {
		list = append(list, contender{"mptcp" + string(rune('0'+n)), speed.Setup{Link: link, Paths: n}})
	}
	return append(list, contender{"checksum", speed.Setup{Link: link, MPTCP: &mptcp.Config{Checksum: true}}})
}

// speedSizes are how much is measured.
type speedSizes struct {
	turn  time.Duration // of one stack in one round
	pairs int           // idle connections whose memory is measured
	idle  int           // idle connections beside a busy one
	many  int           // most idle connections in one process
}

func planSpeed(o Options) Plan {
	z := Pick(o,
		speedSizes{turn: 50 * time.Millisecond, pairs: 100, idle: 100, many: 500},
		speedSizes{turn: 500 * time.Millisecond, pairs: 5000, idle: 10_000, many: 100_000})
	p := Plan{Params: map[string]any{
		"turn s": z.turn.Seconds(), "idle pairs": z.pairs, "idle beside": z.idle, "most idle": z.many,
		"buffer bytes": speed.BufferSize, "write bytes": speed.WriteSize, "cores": runtime.GOMAXPROCS(0),
	}}
	add := func(name string, run func(*Unit) error) {
		p.Cases = append(p.Cases, Case{name, func(u *Unit) error { return unlocked(func() error { return run(u) }) }})
	}
	for _, c := range []struct {
		name  string
		link  netstack.PipeConfig
		paths []int
	}{
		{"mtu1500", speed.Wire, []int{1, 2, 4, 6}},
		{"mtu9000", speed.Jumbo, []int{1, 2}},
		{"offload", speed.Offload, []int{1, 2}},
		{"mtu65535", speed.Loopback, []int{1, 2, 4, 6}},
	} {
		add(c.name, func(u *Unit) error { return bulkInTurn(u, contendersOn(c.link, c.paths...), z.turn) })
	}
	add("latency", func(u *Unit) error { return latencyInTurn(u, contendersOn(speed.Wire, 1, 2), z.turn) })
	add("dials", func(u *Unit) error { return dialsInTurn(u, contendersOn(speed.Wire, 1, 2), z.turn) })
	add("memory", func(u *Unit) error { return memoryInTurn(u, z) })
	add("scale", func(u *Unit) error { return scaleInTurn(u, z) })
	absent := []string{}
	if os.Geteuid() == 0 && speed.HasKernel {
		add("kernel", func(u *Unit) error { return kernelInTurn(u, z.turn) })
	} else {
		absent = append(absent, "kernel: needs Linux and root")
	}
	p.Params["absent"] = absent
	return p
}

// unlocked runs f on a goroutine that may change threads: those of the stacks
// must not all be handed over to the one of the unit.
func unlocked(f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	return <-done
}

// inTurn measures the contenders one after the other, in an order that changes
// with the round, so that none always comes first. None pays for what another left.
func inTurn(u *Unit, list []contender, measure func(c contender) error) error {
	var all error
	for i := range list {
		c := list[(i+int(u.Seed))%len(list)]
		runtime.GC()
		if err := measure(c); err != nil {
			all = errors.Join(all, errors.New(c.name+": "+err.Error()))
		}
	}
	return all
}

// onRig builds a rig, uses it and takes it down.
func onRig(s speed.Setup, use func(*speed.Rig) error) error {
	r, err := speed.New(s)
	if err != nil {
		return err
	}
	return errors.Join(use(r), r.Close())
}

// onConnection is onRig with a connection, which use closes.
func onConnection(s speed.Setup, use func(client, server net.Conn) error) error {
	return onRig(s, func(r *speed.Rig) error {
		client, server, err := r.Connect()
		if err != nil {
			return err
		}
		return use(client, server)
	})
}

// warm is how much of a turn goes by before the measurement, which slow start
// and growing buffers would spoil.
const warm = 10

func bulkInTurn(u *Unit, list []contender, turn time.Duration) error {
	err := inTurn(u, list, func(c contender) error {
		return profiled(u, c.name, func() error {
			return onConnection(c.setup, func(client, server net.Conn) error {
				used, err := speed.Bulk(client, server, turn/warm, turn)
				u.Set(c.name+" MB/s", used.PerSecond()/1e6)
				if used.CPU > 0 {
					u.Set(c.name+" MB/cpu-s", used.PerCPU()/1e6)
				}
				return err
			})
		})
	})
	u.Set("copy MB/s", speed.CopyRate(turn/2)/1e6)
	return err
}

func latencyInTurn(u *Unit, list []contender, turn time.Duration) error {
	return inTurn(u, list, func(c contender) error {
		return profiled(u, c.name, func() error {
			return onConnection(c.setup, func(client, server net.Conn) error {
				used, err := speed.PingPong(client, server, turn)
				u.Set(c.name+" us", 1e6/used.PerSecond())
				return err
			})
		})
	})
}

func dialsInTurn(u *Unit, list []contender, turn time.Duration) error {
	return inTurn(u, list, func(c contender) error {
		return profiled(u, c.name, func() error {
			return onRig(c.setup, func(r *speed.Rig) error {
				used, err := speed.Dials(r, turn)
				u.Set(c.name+" 1/s", used.PerSecond())
				return err
			})
		})
	})
}

// idleConfig is a connection that does nothing when nothing is asked of it.
func idleConfig(plain bool) *mptcp.Config { return &mptcp.Config{Plain: plain, KeepAlive: -1} }

func memoryInTurn(u *Unit, z speedSizes) error {
	list := []contender{
		{"gvisor", speed.Setup{Link: speed.Wire, GVisor: true}},
		{"tcp", speed.Setup{Link: speed.Wire, MPTCP: idleConfig(true), Tuned: true}},
		{"mptcp1", speed.Setup{Link: speed.Wire, MPTCP: idleConfig(false), Tuned: true}},
		{"mptcp2", speed.Setup{Link: speed.Wire, Paths: 2, MPTCP: idleConfig(false), Tuned: true}},
	}
	hold := func(name string, s speed.Setup, n int) error {
		return onRig(s, func(r *speed.Rig) error {
			held, err := speed.Hold(r, n)
			if err != nil {
				return err
			}
			u.Set(name+" KB", held.Bytes/1e3)
			return errors.Join(heapProfile(u, name), held.Close())
		})
	}
	err := inTurn(u, list, func(c contender) error { return hold(c.name, c.setup, z.pairs) })
	if u.Seed == 1 {
		s := list[len(list)-1].setup
		err = errors.Join(err, hold("mptcp2 most", s, z.many))
	}
	return err
}

// scaleInTurn measures what many idle connections and many subflows add to the
// cost of a busy connection.
func scaleInTurn(u *Unit, z speedSizes) error {
	type load struct {
		name        string
		idle, paths int
	}
	var all error
	loads := []load{{"alone", 0, 1}, {"beside idle", z.idle, 1}, {"8 subflows", 0, 8}}
	for i := range loads {
		l := loads[(i+int(u.Seed))%len(loads)]
		cfg := idleConfig(false)
		cfg.MaxSubflows = 8
		s := speed.Setup{Link: speed.Wire, Paths: l.paths, MPTCP: cfg}
		all = errors.Join(all, onRig(s, func(r *speed.Rig) error {
			held, err := speed.Hold(r, l.idle)
			if err != nil {
				return err
			}
			client, server, err := r.Connect()
			if err != nil {
				return errors.Join(err, held.Close())
			}
			used, err := speed.Bulk(client, server, z.turn/warm, z.turn)
			u.Set(l.name+" MB/s", used.PerSecond()/1e6)
			if used.CPU > 0 {
				u.Set(l.name+" MB/cpu-s", used.PerCPU()/1e6)
			}
			return errors.Join(err, held.Close())
		}))
	}
	return all
}

func kernelInTurn(u *Unit, turn time.Duration) error {
	rates, err := speed.Kernel(turn, int(u.Seed))
	for name, v := range rates {
		u.Set(name+" MB/s", v/1e6)
	}
	return err
}

// profiled runs f and, in the first round of a full run, keeps a profile of the
// processor time in the unit's directory.
func profiled(u *Unit, name string, f func() error) error {
	w, err := u.profile(name + ".cpu")
	if w == nil || err != nil {
		return errors.Join(err, f())
	}
	if err := pprof.StartCPUProfile(w); err != nil {
		return errors.Join(err, w.Close())
	}
	err = f()
	pprof.StopCPUProfile()
	return errors.Join(err, w.Close())
}

func heapProfile(u *Unit, name string) error {
	w, err := u.profile(name + ".heap")
	if w == nil || err != nil {
		return err
	}
	return errors.Join(pprof.WriteHeapProfile(w), w.Close())
}

// profile opens a file for a profile; nil if none is to be kept.
func (u *Unit) profile(name string) (*os.File, error) {
	if u.Dir == "" || u.Quick || u.Seed != 1 {
		return nil, nil
	}
	dir := filepath.Join(u.Dir, "profiles")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return os.Create(filepath.Join(dir, u.Case+"-"+name+".pprof"))
}

// demand is what a ratio of two values of a case must be.
type demand struct {
	key, name, of, to string
	least, most       float64 // NaN = not asked for
}

var none = math.NaN()

var speedDemands = []demand{
	{"mtu1500 mptcp1 / gvisor", "mtu1500", "mptcp1 MB/s", "gvisor MB/s", 1.3, none},
	{"mtu1500 mptcp2 / gvisor", "mtu1500", "mptcp2 MB/s", "gvisor MB/s", 1.3, none},
	{"mtu1500 tcp / gvisor", "mtu1500", "tcp MB/s", "gvisor MB/s", none, none},
	{"mtu1500 mptcp1 / tcp", "mtu1500", "mptcp1 MB/s", "tcp MB/s", 0.9, none},
	{"mtu1500 checksum / tcp", "mtu1500", "checksum MB/s", "tcp MB/s", none, none},
	{"mtu9000 mptcp1 / gvisor", "mtu9000", "mptcp1 MB/s", "gvisor MB/s", none, none},
	{"offload mptcp1 / gvisor", "offload", "mptcp1 MB/s", "gvisor MB/s", 1.2, none},
	{"offload mptcp1 / gvisor, by processor time", "offload", "mptcp1 MB/cpu-s", "gvisor MB/cpu-s", none, none},
	{"offload mptcp2 / gvisor", "offload", "mptcp2 MB/s", "gvisor MB/s", none, none},
	{"offload mptcp1 / tcp", "offload", "mptcp1 MB/s", "tcp MB/s", 0.9, none},
	{"mtu65535 mptcp1 / gvisor", "mtu65535", "mptcp1 MB/s", "gvisor MB/s", 1.2, none},
	{"mtu65535 mptcp1 / gvisor, by processor time", "mtu65535", "mptcp1 MB/cpu-s", "gvisor MB/cpu-s", none, none},
	{"mtu65535 mptcp2 / mptcp1", "mtu65535", "mptcp2 MB/s", "mptcp1 MB/s", 0.95, none},
	{"mtu65535 mptcp4 / mptcp1", "mtu65535", "mptcp4 MB/s", "mptcp1 MB/s", none, none},
	{"mtu65535 mptcp6 / mptcp1", "mtu65535", "mptcp6 MB/s", "mptcp1 MB/s", 0.95, none},
	{"mtu65535 mptcp1 / tcp", "mtu65535", "mptcp1 MB/s", "tcp MB/s", 0.9, none},
	{"mtu65535 checksum / tcp", "mtu65535", "checksum MB/s", "tcp MB/s", none, none},
	{"mtu65535 mptcp1 / memory copy", "mtu65535", "mptcp1 MB/s", "copy MB/s", none, none},
	{"latency tcp / gvisor", "latency", "tcp us", "gvisor us", none, 0.45},
	{"latency mptcp2 / tcp", "latency", "mptcp2 us", "tcp us", none, 1.15},
	{"dials tcp / gvisor", "dials", "tcp 1/s", "gvisor 1/s", 1.5, none},
	{"dials mptcp1 / tcp", "dials", "mptcp1 1/s", "tcp 1/s", 0.75, none},
	{"dials mptcp2 / tcp", "dials", "mptcp2 1/s", "tcp 1/s", 0.4, none},
	{"memory tcp / gvisor", "memory", "tcp KB", "gvisor KB", none, 0.7},
	{"memory mptcp2 / gvisor", "memory", "mptcp2 KB", "gvisor KB", none, 1.2},
	{"scale alone / beside idle", "scale", "alone MB/s", "beside idle MB/s", none, 1.1},
	{"scale 1 / 8 subflows", "scale", "alone MB/s", "8 subflows MB/s", none, 1.3},
}

// kernelDemands need root.
var kernelDemands = []demand{
	{"to the kernel, tcp / gvisor", "kernel", "tcp out MB/s", "gvisor out MB/s", 1.05, none},
	{"from the kernel, tcp / gvisor", "kernel", "tcp in MB/s", "gvisor in MB/s", 1.05, none},
	{"to the kernel, mptcp2 / tcp", "kernel", "mptcp2 out MB/s", "tcp out MB/s", 0.9, none},
	{"from the kernel, mptcp2 / tcp", "kernel", "mptcp2 in MB/s", "tcp in MB/s", 0.9, none},
	{"to the kernel, mptcp2 / kernel mptcp", "kernel", "mptcp2 out MB/s", "veth mptcp2 MB/s", 0.5, none},
	{"from the kernel, mptcp2 / kernel mptcp", "kernel", "mptcp2 in MB/s", "veth mptcp2 MB/s", 0.6, none},
}

func reduceSpeed(r *Results, rep *Report) {
	have := make(map[string]bool)
	for _, c := range r.Plan.Cases {
		have[c.Name] = true
	}
	demands := speedDemands
	if have["kernel"] {
		demands = append(demands[:len(demands):len(demands)], kernelDemands...)
	}
	bars := figure.Bars{
		Title: "Ratios of speed", Note: "Medians over the rounds of a run; each ratio is of two measurements of the same round",
		Y: figure.Axis{Label: "ratio"}, Groups: []string{"ratio"},
	}
	for _, d := range demands {
		of, to := measuredValues(r, d.name, d.of), measuredValues(r, d.name, d.to)
		if len(of) == 0 || len(of) != len(to) {
			continue // processor time is not known on every system
		}
		m := rep.Metric(d.key, "", Ratios(of, to))
		if !math.IsNaN(d.least) {
			m.AtLeast(d.least)
		}
		if !math.IsNaN(d.most) {
			m.AtMost(d.most)
		}
		median, least, most := m.middle()
		bars.Series = append(bars.Series, figure.Bar{Name: d.key, Mean: []float64{median}, Lo: []float64{least}, Hi: []float64{most}})
	}
	for _, c := range r.Plan.Cases {
		seen := make(map[string]bool)
		for _, out := range r.Outcomes(c.Name) {
			for _, key := range slices.Sorted(maps.Keys(out.Values)) {
				if !seen[key] {
					seen[key] = true
					rep.Metric(c.Name+" "+key, "", measuredValues(r, c.Name, key))
				}
			}
		}
	}
	// The record of the first users of MPTCP: 51.8 Gbit/s over six links of 10.
	if best := measuredValues(r, "mtu65535", "mptcp6 MB/s"); len(best) > 0 {
		gigabits := make([]float64, len(best))
		for i, v := range best {
			gigabits[i] = v * 8 / 1e3
		}
		rep.Metric("mtu65535 mptcp6", "Gbit/s", gigabits).Paper(51.8)
	}
	rep.Figure(&bars)
}

// measuredValues returns a value of a case from the rounds that have it.
func measuredValues(r *Results, name, key string) []float64 {
	var all []float64
	for _, out := range r.Outcomes(name) {
		if v, ok := out.Values[key]; ok {
			all = append(all, v)
		}
	}
	return all
}
