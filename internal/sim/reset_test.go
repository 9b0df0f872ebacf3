package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/host"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/mpconn"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/sim"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// resets is a firewall that loses its mind: when told to, it turns the next
// segment of the first subflow into a RST, once in each direction chosen.
type resets struct{ out, in bool }

func (r *resets) box(due *bool) sim.Box {
	return func(_ mono.Time, seg *wire.Segment, forward func(*wire.Segment)) {
		if *due && seg.Flags&(wire.SYN|wire.RST) == 0 {
			*due = false
			seg.Flags, seg.Has, seg.Payload = wire.RST, 0, nil
		}
		forward(seg)
	}
}

// RFC 8684, Section 3.5: a RST closes its subflow only, also the only one: the
// connection goes on with a join, whichever end it struck. Guard: disowned in
// internal/mpconn/close.go.
func TestResetOfTheOnlySubflow(t *testing.T) {
	for _, r := range []resets{{out: true}, {in: true}, {out: true, in: true}} {
		p := sim.TwoHosts(sim.PairConfig{Seed: 17, Paths: fastAndSlow()[:1]})
		due := resets{}
		p.Links[0].Insert(sim.EndA, sim.Middlebox{Out: due.box(&due.out), In: due.box(&due.in)})
		tr := p.Start(sim.TransferConfig{AB: 4 * mib, BA: mib, ConnA: sim.DefaultConn(), ConnB: sim.DefaultConn(), StayOpen: true})
		p.RunFor(500 * time.Millisecond)
		due = r
		struck := p.Now()
		replaced := func() bool { i := tr.ConnA.Info(); return i.Opened == 2 && i.Subflows == 1 }
		require.True(t, p.RunUntil(time.Second, replaced), "%+v", r)
		require.Less(t, p.Now().Sub(struck), 300*time.Millisecond, "no timer had to fire")
		require.True(t, p.RunUntil(time.Minute, tr.Delivered), "%+v", r)
		require.Empty(t, p.Violations())
	}
}

// A peer that has forgotten the connection refuses the join: the connection
// ends at once, with what ended its only subflow.
func TestResetByAPeerThatForgot(t *testing.T) {
	var why reason.Close
	p := sim.TwoHosts(sim.PairConfig{Seed: 18, Paths: fastAndSlow()[:1], Host: host.Config{
		Observe: func(_ mono.Time, c *host.Conn, e mpconn.Event) {
			if e.Kind == mpconn.EventClosed && c.Active() {
				why = e.Close
			}
		},
	}})
	due := resets{}
	first := due.box(&due.in)
	p.Links[0].Insert(sim.EndA, sim.Middlebox{In: func(now mono.Time, seg *wire.Segment, forward func(*wire.Segment)) {
		if seg.Flags.Has(wire.SYN) && seg.Has&wire.OptMPJoin != 0 {
			seg.Flags, seg.Has = wire.RST|wire.ACK, 0
		}
		first(now, seg, forward)
	}})
	p.Start(sim.TransferConfig{AB: 4 * mib, ConnA: sim.DefaultConn(), ConnB: sim.DefaultConn(), StayOpen: true})
	p.RunFor(500 * time.Millisecond)
	require.Equal(t, reason.CloseNone, why)
	due.in = true
	require.True(t, p.RunUntil(300*time.Millisecond, func() bool { return why != reason.CloseNone }))
	require.Equal(t, reason.CloseRemoteReset, why)
}
