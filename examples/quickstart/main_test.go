package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// runJSON runs the program in virtual time and returns its report.
func runJSON(t *testing.T, args ...string) *report {
	t.Helper()
	var out bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		require.NoError(t, command(append(args, "-json"), &out, false))
	})
	r := new(report)
	d := json.NewDecoder(&out)
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(r))
	return r
}

func TestFastPathComesBackAndNothingIsLost(t *testing.T) {
	r := runJSON(t)
	require.True(t, r.SHA256OK)
	require.EqualValues(t, 32<<20, r.Bytes)
	require.Len(t, r.Paths, 2)
	// 10 Mb/s alone would have taken 27 s.
	require.Less(t, r.Seconds, 15.0)
	for _, p := range r.Paths {
		require.Greater(t, p.Share, 0.1, p.Name)
	}
	require.InDelta(t, 1, r.Paths[0].Share+r.Paths[1].Share, 1e-9)
	require.Positive(t, r.Paths[1].Reinjected, "what the fast path lost goes over the other")
}

func TestWithoutOutageTheRatesAddUp(t *testing.T) {
	r := runJSON(t, "-outage", "0")
	require.True(t, r.SHA256OK)
	require.GreaterOrEqual(t, r.Goodput, 0.9*40)
}

func TestFileArrivesOverLossyPaths(t *testing.T) {
	dir := t.TempDir()
	file, pcap := filepath.Join(dir, "file"), filepath.Join(dir, "client.pcapng")
	require.NoError(t, os.WriteFile(file, bytes.Repeat([]byte("0123456789"), 100_000), 0o600))
	r := runJSON(t, "-file", file, "-rates", "20,20,20", "-delays", "10ms", "-loss", "0,1,2", "-outage", "100ms",
		"-scheduler", "roundrobin", "-cc", "reno", "-pcap", pcap)
	require.True(t, r.SHA256OK)
	require.EqualValues(t, 1_000_000, r.Bytes)
	require.Len(t, r.Paths, 3)
	written, err := os.Stat(pcap)
	require.NoError(t, err)
	require.Greater(t, written.Size(), int64(1_000_000))
}

// The only path dies, another one appears three seconds later, and the
// connection goes on there.
func TestHandover(t *testing.T) {
	r := runJSON(t, "-handover", "-bytes", "8000000")
	requireHandover(t, r, 8_000_000)
	require.Greater(t, r.Seconds, 3.0)
}

// The same on the system's clock.
func TestHandoverInRealTime(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, command([]string{"-handover", "-bytes", "1000000", "-rates", "50,50", "-outage", "200ms", "-json"}, &out, false))
	r := new(report)
	require.NoError(t, json.Unmarshal(out.Bytes(), r))
	requireHandover(t, r, 1_000_000)
}

func requireHandover(t *testing.T, r *report, n int64) {
	t.Helper()
	require.True(t, r.SHA256OK)
	require.Equal(t, n, r.Bytes)
	require.Len(t, r.Paths, 2)
	require.Positive(t, r.Paths[0].Bytes)
	require.Greater(t, r.Paths[1].Share, 0.4, "all that the first path had not delivered")
}

func TestTextShowsEveryPath(t *testing.T) {
	var out bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		require.NoError(t, command([]string{"-bytes", "1000000", "-outage", "0"}, &out, true))
	})
	require.Contains(t, out.String(), "path1")
	require.Contains(t, out.String(), "path2")
	require.Contains(t, out.String(), "SHA-256 equal")
}

func TestOptionsSayWhatIsWrong(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"-rates=0", "-rates"},
		{"-rates=x", "-rates"},
		{"-rates=1,1,1,1,1,1,1,1,1", "at most 8"},
		{"-delays=1ms,2ms,3ms", "-delays"},
		{"-delays=fast", "-delays"},
		{"-loss=100", "-loss"},
		{"-loss=1,2,3", "-loss"},
		{"-scheduler=best", "-scheduler"},
		{"-cc=best", "-cc"},
		{"-bytes=0", "-bytes"},
		{"-outage=-1s", "-outage"},
		{"-handover -rates=1", "-handover"},
		{"file", "unexpected argument"},
	} {
		_, err := parse(strings.Fields(c.args), io.Discard)
		require.ErrorContains(t, err, c.want, c.args)
	}
	o, err := parse([]string{"-rates=5,7", "-delays=10ms", "-loss=0,2"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, []path{{5e6, 10 * time.Millisecond, 0}, {7e6, 10 * time.Millisecond, 0.02}}, o.paths)
	require.Equal(t, 1, o.leaving())
}

// Each host's trace tells where every byte went.
func TestTraceOfBothHosts(t *testing.T) {
	name := filepath.Join(t.TempDir(), "run")
	r := runJSON(t, "-bytes", "2000000", "-outage", "100ms", "-trace", name)
	require.True(t, r.SHA256OK)
	type record struct {
		Name string `json:"name"`
		Path string `json:"path_id"`
		Data struct {
			Offset *int64 `json:"offset"`
			Len    int64  `json:"len"`
		} `json:"data"`
	}
	highest := func(host, event string) (end int64, paths map[string]bool) {
		b, err := os.ReadFile(name + "." + host + ".sqlog")
		require.NoError(t, err)
		paths = make(map[string]bool)
		for _, line := range bytes.Split(b, []byte{0x1e})[2:] {
			var r record
			require.NoError(t, json.Unmarshal(line, &r))
			if r.Name == event && r.Data.Offset != nil {
				end = max(end, *r.Data.Offset+r.Data.Len)
				paths[r.Path] = true
			}
		}
		return end, paths
	}
	for host, event := range map[string]string{"client": "mptcp:segment_sent", "server": "mptcp:segment_received"} {
		end, paths := highest(host, event)
		require.EqualValues(t, 2_000_000, end, host)
		require.Len(t, paths, 2, host)
	}
}
