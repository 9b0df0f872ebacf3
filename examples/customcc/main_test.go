package main

import (
	"math"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/cc"
)

// Over links of 20 and 5 Mb/s the bytes get through, with the program's own
// control and with one of the library's.
func TestTransfers(t *testing.T) {
	for _, name := range []string{"scalable", "reno"} {
		var out strings.Builder
		synctest.Test(t, func(t *testing.T) {
			require.NoError(t, run(name, 2<<20, &out))
		})
		require.True(t, strings.HasPrefix(out.String(), name+": "), out.String())
		require.Contains(t, out.String(), "over path2")
	}
	require.ErrorContains(t, run("nonesuch", 1, &strings.Builder{}), "scalable")
}

func TestScalable(t *testing.T) {
	c := group{}.Add(cc.Params{MSS: 1000, InitialWindow: 10_000})
	c.OnAck(&cc.Sample{Acked: 1000, CwndLimited: true})
	require.Equal(t, 11_000.0, c.State().Cwnd, "slow start")
	c.OnLoss(cc.LossFast, &cc.Sample{})
	require.Equal(t, cc.State{Cwnd: 9625, Ssthresh: 9625}, c.State())
	c.OnAck(&cc.Sample{Acked: 1000, CwndLimited: true})
	require.Equal(t, 9635.0, c.State().Cwnd, "1/100 of what was acknowledged")
	c.Undo()
	require.Equal(t, cc.State{Cwnd: 11_000, Ssthresh: math.Inf(1)}, c.State())
}
