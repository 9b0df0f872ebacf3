package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func measured(t *testing.T, args ...string) *result {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), append(args, "-json"), &out, io.Discard))
	var res result
	require.NoError(t, json.Unmarshal(out.Bytes(), &res))
	return &res
}

// Every byte is in an interval, in a connection and, payload counted once as
// nothing is lost, in a path.
func TestSumsAgree(t *testing.T) {
	for name, args := range map[string][]string{
		"forward": {"-paths", "2", "-P", "2"},
		"reverse": {"-paths", "2", "-P", "2", "-R"},
		"tcp":     {"-tcp", "-P", "2"},
		"shaped":  {"-paths", "2", "-rate", "200", "-delay", "2ms", "-P", "2"},
	} {
		t.Run(name, func(t *testing.T) {
			res := measured(t, append(args, "-t", "200ms", "-i", "50ms")...)
			require.Equal(t, 2, res.Connections)
			require.Equal(t, name == "reverse", res.Reverse)
			require.Equal(t, name != "tcp", res.MPTCP)
			require.Positive(t, res.Total.Bytes)
			require.NotEmpty(t, res.Intervals)
			var intervals, conns, paths int64
			end := 0.0
			for _, s := range res.Intervals {
				require.Equal(t, end, s.Start)
				end = s.End
				intervals += s.Bytes
			}
			for _, n := range res.PerConn {
				require.Positive(t, n)
				conns += n
			}
			for _, n := range res.Total.Paths {
				paths += n
			}
			require.Equal(t, res.Total.End, end)
			require.Equal(t, res.Total.Bytes, intervals)
			require.Equal(t, res.Total.Bytes, conns)
			require.GreaterOrEqual(t, paths, res.Total.Bytes, "payload on the paths")
			if name != "tcp" {
				require.Contains(t, res.Total.Paths, "path1")
				require.Contains(t, res.Total.Paths, "path2")
			}
		})
	}
}

func TestLinesHaveAColumnForEachPath(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"-t", "100ms", "-i", "30ms", "-paths", "2"}, &out, io.Discard))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.GreaterOrEqual(t, len(lines), 2)
	for _, l := range lines {
		require.Contains(t, l, "path1")
		require.Contains(t, l, "path2")
	}
	require.Contains(t, lines[len(lines)-1], "total of 1, mptcp true")
}

func TestSpanText(t *testing.T) {
	s := newSpan(1e9, 2e9, 125_000_000)
	s.Paths = map[string]int64{"b": 25_000_000, "a": 100_000_000}
	require.Equal(t, "   1.00-   2.00 s    125000000 bytes  1.00 Gb/s  a 800.0 Mb/s  b 200.0 Mb/s", s.String())
}

// An interrupt ends the measurement.
func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	lines := writerFunc(func(p []byte) (int, error) { cancel(); return len(p), nil })
	err := run(ctx, []string{"-t", "1h", "-i", "1ms"}, lines, io.Discard)
	require.Error(t, err)
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// The operating system's connections speak the same protocol.
func TestOperatingSystem(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	address := make(chan string, 1)
	log := writerFunc(func(p []byte) (int, error) {
		if at, ok := strings.CutPrefix(strings.TrimSpace(string(p)), "listening on "); ok {
			address <- at
		}
		return len(p), nil
	})
	served := make(chan error, 1)
	go func() { served <- run(ctx, []string{"-s", "-os", "-tcp", "-listen", "127.0.0.1:0"}, io.Discard, log) }()
	res := measured(t, "-c", <-address, "-os", "-tcp", "-t", "50ms")
	require.Positive(t, res.Total.Bytes)
	require.Empty(t, res.Total.Paths)
	cancel()
	require.NoError(t, <-served)
}

func TestWrongCommandLines(t *testing.T) {
	for _, args := range []string{
		"x", "-s -c a:1", "-s", "-c a:1", "-os", "-s -os -tun a,10.0.0.1/24,10.0.0.2", "-t 0s", "-i -1s", "-P 0", "-P 129",
		"-paths 0", "-paths 9", "-rate -1", "-tun a", "-tun a,10.0.0.1/24,10.0.1.2", "-tun a,10.0.0.1/24,10.0.0.1", "-unknown",
	} {
		_, err := parse(strings.Fields(args), io.Discard)
		require.Error(t, err, args)
	}
	require.Error(t, errors.Join(run(t.Context(), []string{"-x"}, io.Discard, io.Discard)))
}
