package netstack

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func state(name string, index int, up bool, addrs ...string) LinkState {
	s := LinkState{Name: name, Index: index, Up: up}
	for _, a := range addrs {
		s.Addrs = append(s.Addrs, netip.MustParsePrefix(a))
	}
	return s
}

func TestChangesOfInterfaces(t *testing.T) {
	lo := state("lo", 1, true, "127.0.0.1/8")
	eth := state("eth0", 2, true, "192.0.2.1/24", "2001:db8::1/64")
	for _, c := range []struct {
		why            string
		old, now, want []LinkState
	}{
		{"at first, all", nil, []LinkState{lo, eth}, []LinkState{lo, eth}},
		{"nothing", []LinkState{lo, eth}, []LinkState{lo, eth}, nil},
		{
			"carrier lost",
			[]LinkState{lo, eth},
			[]LinkState{lo, state("eth0", 2, false, "192.0.2.1/24", "2001:db8::1/64")},
			[]LinkState{state("eth0", 2, false, "192.0.2.1/24", "2001:db8::1/64")},
		},
		{
			"address lost",
			[]LinkState{lo, eth},
			[]LinkState{lo, state("eth0", 2, true, "2001:db8::1/64")},
			[]LinkState{state("eth0", 2, true, "2001:db8::1/64")},
		},
		{"gone", []LinkState{lo, eth}, []LinkState{lo}, []LinkState{state("eth0", 2, false)}},
		{
			"renamed",
			[]LinkState{eth},
			[]LinkState{state("wan", 2, true, "192.0.2.1/24")},
			[]LinkState{state("eth0", 2, false), state("wan", 2, true, "192.0.2.1/24")},
		},
		{
			"replaced by one like it",
			[]LinkState{eth},
			[]LinkState{state("eth0", 7, true, "192.0.2.1/24", "2001:db8::1/64")},
			[]LinkState{state("eth0", 7, true, "192.0.2.1/24", "2001:db8::1/64")},
		},
	} {
		require.Equal(t, c.want, changes(c.old, c.now), c.why)
	}
}

func TestUsableInterface(t *testing.T) {
	require.True(t, state("a", 1, true, "fe80::1/64", "192.0.2.1/24").Usable())
	require.False(t, state("a", 1, false, "192.0.2.1/24").Usable())
	require.False(t, state("a", 1, true, "fe80::1/64", "127.0.0.1/8", "169.254.1.1/16").Usable())
	require.False(t, state("a", 1, true).Usable())
}

// What Watch says at first is what the system says, and it ends with its
// context.
func TestWatchReportsWhatIsThere(t *testing.T) {
	all, err := net.Interfaces()
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var names []string
	err = Watch(ctx, func(s LinkState) {
		if names = append(names, s.Name); len(names) == len(all) {
			cancel()
		}
	})
	require.ErrorIs(t, err, context.Canceled)
	for _, i := range all {
		require.Contains(t, names, i.Name)
	}
}

func TestPollerWaitsASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		require.NoError(t, poller{}.wait(t.Context()))
		require.Equal(t, time.Second, time.Since(start))
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		require.ErrorIs(t, poller{}.wait(ctx), context.DeadlineExceeded)
	})
}
