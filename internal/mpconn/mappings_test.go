package mpconn

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whatever the order in which ranges of the stream were bound to a flow, and
// however many are gone again, looking one up by its place in the stream finds
// what looking at all would.
func TestMappingsByStreamOffset(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var m mappings
	var model []mapping
	off, next, found, missed := uint64(0), uint64(0), 0, 0
	for range 20_000 {
		switch {
		case len(model) > 0 && rng.IntN(2) == 0:
			m.pop()
			model = model[1:]
		default:
			n := 1 + rng.IntN(9)
			data := next
			if rng.IntN(20) == 0 { // a reinjection
				data -= min(data, uint64(rng.IntN(100)))
			} else {
				next += uint64(n + rng.IntN(3)*rng.IntN(10)) // others carry what is between
			}
			m.push(mapping{off: off, data: data, n: n})
			model = append(model, mapping{off: off, data: data, n: n})
			off += uint64(n)
		}
		at := next - min(next, uint64(rng.IntN(120)))
		want, c := false, Conn{look: &look{viewFlows: []*flow{{out: m}}}}
		c.snd.nxt = next
		end := next
		for _, x := range model {
			hi := x.data + uint64(x.n)
			want = want || x.data <= at && at < hi
			if x.data > at {
				end = min(end, x.data)
			} else if hi > at {
				end = min(end, hi)
			}
		}
		require.Equal(t, want, m.carries(at))
		if set, n := c.holders(int64(at)); at < next {
			require.Equal(t, want, set == 1)
			require.EqualValues(t, end-at, n)
		}
		if want {
			found++
		} else {
			missed++
		}
	}
	require.Greater(t, found, 1000)
	require.Greater(t, missed, 1000)
}
