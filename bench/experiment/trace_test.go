package experiment

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/internal/sim"
)

// One of two links goes down in the middle of a transfer: both hosts' traces
// account for every byte, and what was lost is marked as reinjected.
func TestTraceOfASimulation(t *testing.T) {
	const size = 1 << 20
	dir := t.TempDir()
	var hash [2]uint64
	for i, traceDir := range []string{"", dir} {
		c := Case{Name: "a b/c", Run: func(u *Unit) error {
			l := link.Config{Rate: 5e6, Delay: 10 * time.Millisecond}
			net := sim.TwoHosts(sim.PairConfig{Seed: u.Seed, Paths: []sim.Shape{{AB: l, BA: l}, {AB: l, BA: l}}})
			u.Trace(net.Sim)
			conn := u.Conn("", "", "")
			tr := net.Start(sim.TransferConfig{AB: size, ConnA: conn, ConnB: conn})
			net.After(500*time.Millisecond, func() { net.Links[1].SetUp(false) })
			require.True(t, net.RunUntil(time.Minute, tr.Delivered))
			hash[i] = net.TraceHash()
			return u.Check(net.Sim)
		}}
		_, err := Execute(c, 3, Options{TraceDir: traceDir})
		require.NoError(t, err)
	}
	require.Equal(t, hash[0], hash[1], "watching changes nothing")

	capture, err := os.Stat(filepath.Join(dir, "a_b_c.3.pcapng"))
	require.NoError(t, err)
	require.Greater(t, capture.Size(), int64(size))
	for host, event := range map[string]string{"A": "mptcp:segment_sent", "B": "mptcp:segment_received"} {
		b, err := os.ReadFile(filepath.Join(dir, "a_b_c.3."+host+".sqlog"))
		require.NoError(t, err)
		covered, again := make([]bool, size), 0
		for _, line := range bytes.Split(b, []byte{0x1e})[2:] {
			var r struct {
				Name string
				Data struct {
					Offset *int
					Len    int
				}
			}
			require.NoError(t, json.Unmarshal(line, &r))
			if r.Name == event && r.Data.Offset != nil {
				for i := range r.Data.Len {
					covered[*r.Data.Offset+i] = true
				}
			}
			if r.Name == "mptcp:reinjection" {
				again += r.Data.Len
			}
		}
		missing := 0
		for _, c := range covered {
			if !c {
				missing++
			}
		}
		require.LessOrEqual(t, missing, 1460, "%s: all but the first segment, whose option has no DSN", host)
		require.Equal(t, host == "A", again > 0, "reinjections at %s", host)
	}
}
