package sim_test

import (
	"net/netip"

	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/sim"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// matrix lists the boxes and what becomes of a connection that meets them.
func matrix() []matrixRow {
	var rows []matrixRow
	rows = append(rows, strippingRows()...)
	rows = append(rows, cuttingRows()...)
	rows = append(rows, rewritingRows()...)
	return append(rows, droppingRows()...)
}

func strippingRows() []matrixRow {
	a, b := sim.EndA, sim.EndB
	return []matrixRow{
		{name: "strip SYN", inside: a, box: strips(wire.OptMPTCP, sim.IsSYN), want: map[position]outcome{
			atHandshake: plain(reason.FallbackPeerSYNACK, reason.FallbackPeerSYN),
			atJoin:      mptcp(1),
		}},
		{name: "strip SYN", inside: b, box: strips(wire.OptMPTCP, sim.IsSYN), want: map[position]outcome{
			atHandshake: plain(reason.FallbackPeerSYNACK, reason.FallbackThirdACK),
			atJoin:      mptcp(1),
		}},
		{name: "strip third ACK", inside: a, box: strips(wire.OptMPTCP, sim.IsThirdACK()), want: map[position]outcome{
			atHandshake: plain(reason.FallbackNoMapping, reason.FallbackThirdACK),
			atJoin:      mptcp(1),
		}},
		{name: "strip all", inside: a, box: strips(wire.OptMPTCP, sim.Any), want: map[position]outcome{
			atHandshake: plain(reason.FallbackPeerSYNACK, reason.FallbackPeerSYN),
			atData:      plain(reason.FallbackNoDataACK, reason.FallbackNoMapping),
			midStream:   mptcp(1),
			midOnly:     lost(reason.CloseRemoteReset, reason.CloseLocalReset),
			atJoin:      mptcp(1),
		}},
		{name: "strip all", inside: b, box: strips(wire.OptMPTCP, sim.Any), want: map[position]outcome{
			atHandshake: plain(reason.FallbackPeerSYNACK, reason.FallbackThirdACK),
			atData:      plain(reason.FallbackNoMapping, reason.FallbackNoDataACK),
			midStream:   mptcp(1),
			midOnly:     lost(reason.CloseLocalReset, reason.CloseRemoteReset),
			atJoin:      mptcp(1),
		}},
		{name: "strip all but SYN", inside: a, box: strips(wire.OptMPTCP, notSYN), want: map[position]outcome{
			atHandshake: plain(reason.FallbackNoMapping, reason.FallbackThirdACK),
			midStream:   mptcp(1),
			midOnly:     lost(reason.CloseRemoteReset, reason.CloseLocalReset),
			atJoin:      mptcp(1),
		}},
		{name: "strip all but SYN", inside: b, box: strips(wire.OptMPTCP, notSYN), want: map[position]outcome{
			atHandshake: plain(reason.FallbackNoMapping, reason.FallbackNoDataACK),
			midStream:   mptcp(1),
			midOnly:     lost(reason.CloseLocalReset, reason.CloseRemoteReset),
			atJoin:      mptcp(1),
		}},
		{name: "remove DSS", inside: a, box: strips(wire.OptDSS, sim.Any), want: map[position]outcome{
			// The first data has its mapping in MP_CAPABLE, but B never hears of
			// a DATA_ACK.
			atHandshake: plain(reason.FallbackInfinite, reason.FallbackNoDataACK),
			atData:      plain(reason.FallbackInfinite, reason.FallbackNoDataACK),
			midStream:   mptcp(1),
			midOnly:     lost(reason.CloseRemoteReset, reason.CloseLocalReset),
			atJoin:      mptcp(1),
		}},
		{name: "remove DSS", inside: b, box: strips(wire.OptDSS, sim.Any), want: map[position]outcome{
			atHandshake: plain(reason.FallbackNoMapping, reason.FallbackNoDataACK),
			atData:      plain(reason.FallbackNoMapping, reason.FallbackNoDataACK),
			midStream:   mptcp(1),
			midOnly:     lost(reason.CloseLocalReset, reason.CloseRemoteReset),
			atJoin:      mptcp(1),
		}},
		{name: "remove MP_CAPABLE", inside: a, box: strips(wire.OptMPCapable, sim.Any), want: map[position]outcome{
			atHandshake: plain(reason.FallbackPeerSYNACK, reason.FallbackPeerSYN),
			atData:      plain(reason.FallbackNoDataACK, reason.FallbackNoMapping),
		}},
		{name: "remove MP_CAPABLE", inside: b, box: strips(wire.OptMPCapable, sim.Any), want: map[position]outcome{
			atHandshake: plain(reason.FallbackPeerSYNACK, reason.FallbackThirdACK),
			atData:      mptcp(2),
		}},
		{name: "remove MP_JOIN", inside: a, box: strips(wire.OptMPJoin, sim.Any), want: map[position]outcome{atJoin: mptcp(1)}},
		{name: "remove MP_JOIN", inside: b, box: strips(wire.OptMPJoin, sim.Any), want: map[position]outcome{atJoin: mptcp(1)}},
		{name: "remove ADD_ADDR", inside: a, box: strips(wire.OptAddAddr, sim.Any), want: everywhere(mptcp(2))},
		// A learns of B's second address by it alone.
		{name: "remove ADD_ADDR", inside: b, box: strips(wire.OptAddAddr, sim.Any), want: map[position]outcome{
			atHandshake: mptcp(1), atData: mptcp(1), midStream: mptcp(2), midOnly: mptcp(1), atJoin: mptcp(2),
		}},
	}
}

// bothSides makes two rows of a box that changes nothing for good.
func bothSides(name string, box func(*cell) sim.Middlebox, want map[position]outcome) []matrixRow {
	return []matrixRow{{name: name, inside: sim.EndA, box: box, want: want}, {name: name, inside: sim.EndB, box: box, want: want}}
}

func cuttingRows() (rows []matrixRow) {
	rows = append(rows, bothSides("split", func(*cell) sim.Middlebox { return sim.Split(500) }, everywhere(mptcp(2)))...)
	rows = append(rows, bothSides("coalesce", func(c *cell) sim.Middlebox { return sim.Coalesce(c.Sim, 6000) }, everywhere(mptcp(2)))...)
	rows = append(rows, bothSides("coalesce much", func(c *cell) sim.Middlebox { return sim.Coalesce(c.Sim, 60_000) }, everywhere(mptcp(2)))...)
	rows = append(rows, bothSides("coalesce blindly", func(c *cell) sim.Middlebox { return sim.CoalesceBlindly(c.Sim, 4000) }, everywhere(mptcp(2)))...)
	rows = append(rows, bothSides("resegment", func(c *cell) sim.Middlebox { return sim.Resegment(c.Sim, 700) }, everywhere(mptcp(2)))...)
	return rows
}

func rewritingRows() (rows []matrixRow) {
	offset := bothSides("offset", func(*cell) sim.Middlebox { return sim.Offset(0x40000000, 0xc0001234) }, map[position]outcome{
		atHandshake: mptcp(2), atJoin: mptcp(2),
		// Numbers that change in the middle leave a subflow on which nothing is
		// in the window any more; the only one is replaced when it timed out.
		midStream: mptcp(2), midOnly: mptcp(1),
	})
	rows = append(rows, offset...)
	rows = append(rows, alteringRows()...)
	rows = append(rows, relengtheningRows()...)
	rows = append(rows, natRows()...)
	return append(rows, proxyRows()...)
}

// A checksum that fails makes the only subflow plain; one of several is reset.
func alteringRows() (rows []matrixRow) {
	failed := plain(reason.FallbackChecksum, reason.FallbackChecksum)
	for _, e := range []sim.End{sim.EndA, sim.EndB} {
		rows = append(rows, matrixRow{
			name: "alter", inside: e, box: func(*cell) sim.Middlebox { return sim.Alter(1000) },
			setup: func(c *cell) { c.cfg.ConnA.Checksum, c.cfg.MayAlter = true, true },
			want: map[position]outcome{
				atHandshake: failed, atData: failed, midStream: mptcp(1), midOnly: failed, atJoin: mptcp(1),
			},
		})
	}
	return rows
}

// RFC 8684, Section 3.7: "The use of a checksum will also detect whether the
// length of data on the subflow is increased or decreased". Once the connection
// is plain, the change is one that plain TCP has to bear as well.
func relengtheningRows() (rows []matrixRow) {
	failed := plain(reason.FallbackChecksum, reason.FallbackChecksum)
	for name, by := range map[string]int{"lengthen": 3, "shorten": -3} {
		for _, e := range []sim.End{sim.EndA, sim.EndB} {
			rows = append(rows, matrixRow{
				name: name, inside: e, grows: int64(by), box: func(*cell) sim.Middlebox { return sim.Relength(20_000, by) },
				setup: func(c *cell) { c.cfg.ConnA.Checksum, c.cfg.MayAlter = true, true },
				want: map[position]outcome{
					atHandshake: failed, atData: failed, midStream: mptcp(1), midOnly: failed, atJoin: mptcp(1),
				},
			})
		}
	}
	return rows
}

func natRows() []matrixRow {
	return []matrixRow{
		{
			name: "nat", inside: sim.EndA, box: func(c *cell) sim.Middlebox { return insertNAT(c).Box() },
			want: map[position]outcome{
				atHandshake: mptcp(2), atJoin: mptcp(2),
				// Behind a translator that was not there before the server does
				// not know the subflow and resets it. The client joins anew.
				midStream: mptcp(2), midOnly: mptcp(1),
			},
		},
		{
			name: "nat", inside: sim.EndB, box: func(c *cell) sim.Middlebox {
				n := insertNAT(c)
				n.Forward = c.AddrB(0)
				return n.Box()
			},
			setup: func(c *cell) {
				c.cfg.To = netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, 2}), sim.Port)
			},
			want: map[position]outcome{atHandshake: mptcp(2)},
		},
		{
			name: "nat rebinds", inside: sim.EndA, always: true, box: func(c *cell) sim.Middlebox {
				n := insertNAT(c)
				c.begin = append(c.begin, n.Rebind)
				return n.Box()
			},
			want: map[position]outcome{
				midStream: mptcp(2), midOnly: mptcp(1),
			},
		},
	}
}

func proxyRows() []matrixRow {
	box := func(c *cell) sim.Middlebox { return sim.PreAck(c.Sim, c.link.From(c.inside.Other()), c.begun()) }
	// RFC 8684, Section 3.7: data acknowledged without DATA_ACK, before there
	// was one, means a path without MPTCP: the connection falls back, or a
	// joined subflow is reset.
	return []matrixRow{
		{name: "pre-ack", inside: sim.EndA, always: true, box: box, want: map[position]outcome{
			atHandshake: plain(reason.FallbackNoDataACK, reason.FallbackInfinite),
			atData:      plain(reason.FallbackNoDataACK, reason.FallbackInfinite),
			midStream:   mptcp(2), midOnly: mptcp(1), atJoin: mptcp(1),
		}},
		{name: "pre-ack", inside: sim.EndB, always: true, box: box, want: map[position]outcome{
			atHandshake: plain(reason.FallbackInfinite, reason.FallbackNoDataACK),
			atData:      plain(reason.FallbackInfinite, reason.FallbackNoDataACK),
			midStream:   mptcp(2), midOnly: mptcp(1), atJoin: mptcp(1),
		}},
	}
}

func droppingRows() (rows []matrixRow) {
	silent := plain(reason.FallbackSYNTimeout, reason.FallbackPeerSYN)
	for _, e := range []sim.End{sim.EndA, sim.EndB} {
		rows = append(rows, matrixRow{
			name: "drop unknown options", inside: e, box: func(*cell) sim.Middlebox { return sim.Drop(sim.HasUnknown) },
			want: map[position]outcome{atHandshake: silent, atJoin: mptcp(1)},
		})
	}
	rows = append(rows, blackHoleRows()...)
	return append(rows, bothSides("too big", func(c *cell) sim.Middlebox { return sim.TooBig(1200, c.insideNode()) }, everywhere(mptcp(2)))...)
}

// A path that takes no large packets and says nothing is probed for what it
// takes.
func blackHoleRows() []matrixRow {
	return bothSides("black hole", func(*cell) sim.Middlebox { return sim.BlackHole(1200) }, everywhere(mptcp(2)))
}
