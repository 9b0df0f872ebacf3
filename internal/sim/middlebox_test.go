package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/sim"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// through returns the sizes of the payloads that leave a box when a transfer
// of plain TCP passes through it, and what the receiver read wrong.
func through(t *testing.T, box func(p *sim.Pair) sim.Middlebox) (sizes map[int]int, wrong int64) {
	t.Helper()
	p := sim.TwoHosts(sim.PairConfig{Seed: 71, Paths: fastAndSlow()[:1]})
	sizes = make(map[int]int)
	count := sim.Middlebox{Out: func(_ mono.Time, seg *wire.Segment, forward func(*wire.Segment)) {
		sizes[seg.PayloadLen()]++
		forward(seg)
	}}
	p.Links[0].Insert(sim.EndA, sim.Chain(box(p), count))
	cfg := sim.DefaultConn()
	cfg.Plain = true
	tr := p.Start(sim.TransferConfig{AB: 100_000, ConnA: cfg, ConnB: cfg, MayAlter: true})
	finish(t, p, tr, time.Minute)
	return sizes, tr.ProgramB.Wrong
}

// A segment of plain TCP with timestamps carries 1448 bytes of the 1500.
func TestBoxesCutAndJoin(t *testing.T) {
	sizes, _ := through(t, func(*sim.Pair) sim.Middlebox { return sim.Middlebox{} })
	require.Equal(t, 100_000/1448, sizes[1448])

	sizes, _ = through(t, func(*sim.Pair) sim.Middlebox { return sim.Split(500) })
	require.Zero(t, sizes[1448])
	require.Equal(t, 2*(100_000/1448), sizes[500], "two of 500 and one of 448 each")

	sizes, _ = through(t, func(p *sim.Pair) sim.Middlebox { return sim.Coalesce(p.Sim, 3000) })
	require.Greater(t, sizes[2*1448], 10)

	sizes, _ = through(t, func(p *sim.Pair) sim.Middlebox { return sim.Resegment(p.Sim, 700) })
	require.Greater(t, sizes[700], 120)
	require.Zero(t, sizes[1448])
}

// Bytes 1000, 2000 ... after the SYN are bytes 999, 1999 ... of the stream.
func TestBoxAlters(t *testing.T) {
	_, wrong := through(t, func(*sim.Pair) sim.Middlebox { return sim.Alter(1000) })
	require.EqualValues(t, 100, wrong)
}

// What a translator at the client does is seen at the server alone.
func TestTranslatorHidesTheClient(t *testing.T) {
	p := sim.TwoHosts(sim.PairConfig{Seed: 72, Paths: fastAndSlow()})
	nat := p.Links[0].NewNAT(sim.EndA, p.AddrA(8))
	tr := p.Start(sim.TransferConfig{AB: mib, BA: mib, ConnA: sim.DefaultConn(), ConnB: sim.DefaultConn(), StayOpen: true})
	require.True(t, p.RunUntil(time.Minute, tr.Delivered))
	require.Equal(t, p.AddrA(0), tr.ConnA.LocalAddr().Addr())
	require.Equal(t, nat.Public, tr.ConnB.RemoteAddr().Addr())
	require.Equal(t, 2, tr.ConnB.Info().Subflows)
}

// Sequence numbers at the two ends differ by what the box adds, SACK included:
// a transfer with loss is as fast as without the box.
func TestOffsetIsInvisible(t *testing.T) {
	var last [2]mono.Time
	for i, m := range []sim.Middlebox{{}, sim.Offset(1<<31, 12345)} {
		shapes := fastAndSlow()[:1]
		shapes[0].AB.Loss = 0.02
		p := sim.TwoHosts(sim.PairConfig{Seed: 73, Paths: shapes})
		p.Links[0].Insert(sim.EndA, m)
		tr := p.Start(sim.TransferConfig{AB: mib, ConnA: sim.DefaultConn(), ConnB: sim.DefaultConn()})
		finish(t, p, tr, time.Minute)
		last[i] = tr.ProgramB.LastByte
	}
	require.Equal(t, last[0], last[1])
}
