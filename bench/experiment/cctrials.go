package experiment

import (
	"slices"
	"time"

	"github.com/gomptcp/gomptcp/internal/host"
	"github.com/gomptcp/gomptcp/internal/link"
)

// ccFair: two subflows through one queue of 10 Mb/s, 40 ms, beside one Reno.
func ccFair(u *Unit, name string, warm, d time.Duration) error {
	return ccBeside(u, "fairness", u.Conn("", name, "ndiffports"), "reno", warm, d)
}

// ccOwn: the same beside one TCP of the same control.
func ccOwn(u *Unit, name string, warm, d time.Duration) error {
	return ccBeside(u, "fairness to its own", u.Conn("", name, "ndiffports"), ccAlone[name], warm, d)
}

// ccSingle: a TCP beside a Reno.
func ccSingle(u *Unit, name string, warm, d time.Duration) error {
	return ccBeside(u, "one beside Reno", u.Plain(name), "reno", warm, d)
}

// ccBeside measures the goodput of a connection over that of a TCP beside it.
func ccBeside(u *Unit, key string, conn host.ConnConfig, tcp string, warm, d time.Duration) error {
	n := newCCNet(u, []link.Config{ccLink(10e6, 40*time.Millisecond)}, conn, u.Plain(tcp))
	n.RunFor(warm)
	r := n.rates(d)
	u.Set(key, r[0]/max(r[1], 1e-3))
	return u.Check(n.Sim)
}

// ccPool: two links of 10 Mb/s, 40 ms, one of them shared with a TCP.
func ccPool(u *Unit, name string, warm, d time.Duration) error {
	l := ccLink(10e6, 40*time.Millisecond)
	n := newCCNet(u, []link.Config{l, l}, u.Conn("", name, ""), u.Plain("reno"))
	n.RunFor(warm)
	r := n.rates(d)
	u.Set("pooling", (r[0]+r[1])/ccGoodput(20))
	u.Set("pooling tcp", r[1]/ccGoodput(10))
	return u.Check(n.Sim)
}

// ccLossy: two links of 100 Mb/s, 20 ms, 0.1 % random loss.
func ccLossy(u *Unit, name string, warm, d time.Duration) error {
	l := ccLink(100e6, 20*time.Millisecond)
	l.Loss = 1e-3
	n := newCCNet(u, []link.Config{l, l}, u.Conn("", name, ""))
	n.RunFor(warm)
	u.Set("lossy", n.rates(d)[0]/ccGoodput(200))
	return u.Check(n.Sim)
}

// ccHalf: of two links of 20 Mb/s, 40 ms, one becomes half as fast.
func ccHalf(u *Unit, name string, warm, d time.Duration) error {
	l := ccLink(20e6, 40*time.Millisecond)
	n := newCCNet(u, []link.Config{l, l}, u.Conn("", name, ""))
	n.RunFor(warm)
	slow := l
	slow.Rate /= 2
	n.Paths[0].AB.SetShape(slow)
	u.Set("after halving", n.rates(d)[0]/ccGoodput(30))
	return u.Check(n.Sim)
}

// ccMarks: two subflows through one queue of 1 Gb/s, 200 us, that marks beyond
// 20 packets.
func ccMarks(u *Unit, name string, warm, d time.Duration) error {
	l := link.Config{Rate: 1e9, Delay: 100 * time.Microsecond, QueueBytes: 250 * (1500 + ethernet), MarkBytes: 20 * (1500 + ethernet), Overhead: ethernet}
	n := newCCNet(u, []link.Config{l}, u.Conn("", name, "ndiffports"))
	n.RunFor(warm)
	var queue []float64
	var look func()
	look = func() {
		queue = append(queue, float64(n.Paths[0].AB.Backlog())/(1500+ethernet))
		n.After(50*time.Microsecond, look)
	}
	n.After(0, look)
	u.Set("utilisation", n.rates(d)[0]/ccGoodput(1000))
	slices.Sort(queue)
	u.Set("queue", Quantile(queue, .5))
	return u.Check(n.Sim)
}
