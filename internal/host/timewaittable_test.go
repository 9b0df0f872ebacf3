package host

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/subflow"
)

// The table does what a plain list of at most ten entries, oldest first, does.
func TestTimeWaitTableIsAList(t *testing.T) {
	const most, wait = 10, time.Minute
	type entry struct {
		t   tuple
		at  mono.Time
		nxt uint32
	}
	var want []entry
	drop := func(k tuple) { want = slices.DeleteFunc(want, func(e entry) bool { return e.t == k }) }
	tw, rng, now := newTimeWaitTable(wait, most), rand.New(rand.NewPCG(1, 2)), mono.Time(1)
	for n := range uint32(20_000) {
		now = now.Add(time.Duration(rng.IntN(int(8 * time.Second))))
		at := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, 1}), uint16(1+rng.IntN(30)))
		k := tuple{local: at, remote: at}
		switch w := tw.get(k); rng.IntN(5) {
		case 0, 1:
			tw.add(now, k, subflow.TimeWait{TSRecent: n})
			if drop(k); len(want) == most {
				want = want[1:]
			}
			want = append(want, entry{k, now.Add(wait), n})
		case 2:
			tw.remove(k)
			drop(k)
		case 3:
			if w != nil {
				e := entry{k, now.Add(wait), w.tcp.TSRecent}
				tw.restart(now, w)
				drop(k)
				want = append(want, e)
			}
		case 4:
			tw.expire(now)
			want = slices.DeleteFunc(want, func(e entry) bool { return e.at <= now })
		}
		require.Len(t, tw.entries, len(want))
		require.LessOrEqual(t, len(tw.slots), most+1)
		if len(want) == 0 {
			require.Zero(t, tw.deadline())
			require.Empty(t, tw.slots, "memory is kept")
			continue
		}
		require.Equal(t, want[0].at, tw.deadline())
		for _, e := range want {
			require.True(t, tw.has(e.t))
			w := tw.get(e.t)
			require.Equal(t, e, entry{w.tuple, w.expires, w.tcp.TSRecent})
		}
	}
}
