package mpconn

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/wire"
)

// ids is what one side has said of its addresses on the wire.
type ids struct {
	t      *testing.T
	byAddr map[netip.Addr]uint8
	byID   map[uint8]netip.Addr
}

func (x *ids) note(id uint8, addr netip.Addr) {
	if was, ok := x.byAddr[addr]; ok {
		require.Equal(x.t, was, id, "%v has two ids", addr)
	}
	if was, ok := x.byID[id]; ok {
		require.Equal(x.t, was, addr, "id %d is given to two addresses", id)
	}
	x.byAddr[addr], x.byID[id] = id, addr
}

// sent notes what a segment says.
func (x *ids) sent(s *wire.Segment) {
	if s.Has&wire.OptMPJoin != 0 && s.Flags.Has(wire.SYN) {
		x.note(s.Join.AddrID, s.Src.Addr())
	}
	if s.Has&wire.OptAddAddr != 0 && !s.AddAddr.Echo {
		x.note(s.AddAddr.ID, s.AddAddr.Addr)
	}
	if s.Has&wire.OptRemoveAddr != 0 {
		for _, id := range s.RemoveAddr.IDs[:s.RemoveAddr.N] {
			require.Contains(x.t, x.byID, id, "an id is withdrawn that was never told")
		}
	}
}

// Addresses that are announced, withdrawn, joined from and lost in any order, the
// initial one included: an address has one id for good, an id names one address,
// the initial one is 0, and what is withdrawn was told. There are no counters
// that could run out of step. Guard: localID looks an address up before it gives
// it an id, and takes none away.
func TestAddressIDsStayConsistent(t *testing.T) {
	told := 0
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 13))
		l := proven(t, 4)
		for range 60 {
			k := rng.IntN(4)
			e := []*end{l.a, l.b}[rng.IntN(2)]
			switch rng.IntN(6) {
			case 0:
				e.conn.Announce(l.now, netip.AddrPortFrom(e.at(k).Addr(), 0))
			case 1:
				e.conn.Withdraw(l.now, e.at(k).Addr())
			case 2, 3:
				l.a.conn.Open(l.now, OpenArgs{Local: l.a.at(k), Remote: l.b.at(k)})
				e = l.a
			case 4:
				if e.conn.Info().Subflows > 1 {
					e.conn.FailSubflow(l.now, rng.IntN(e.conn.Info().Opened))
				}
			case 5:
				e.conn.CloseSubflow(l.now, rng.IntN(e.conn.Info().Opened), 0)
			}
			e.pump()
			l.idle(time.Duration(rng.IntN(100)) * time.Millisecond)
			l.a.write(100)
			l.b.readAll()
		}
		for _, e := range []*end{l.a, l.b} {
			x := ids{t, map[netip.Addr]uint8{}, map[uint8]netip.Addr{}}
			x.note(0, e.at(0).Addr())
			for i := range e.sent {
				x.sent(&e.sent[i])
			}
			told += len(x.byID)
		}
	}
	require.Greater(t, told, 4*60)
}
