package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMain fails when goroutines of the hosts or of WireGuard survive the tests.
func TestMain(m *testing.M) {
	code := m.Run()
	if left := leaked(5 * time.Second); left != "" && code == 0 {
		fmt.Fprintf(os.Stderr, "goroutines left over:\n%s\n", left)
		code = 1
	}
	os.Exit(code)
}

// leaked waits for goroutines to end, and returns the stacks of those that have
// not after a time.
func leaked(patience time.Duration) string {
	buf := make([]byte, 1<<20)
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		var left []string
		for _, stack := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")[1:] {
			if strings.Contains(stack, "gomptcp/") || strings.Contains(stack, "zx2c4.com") {
				left = append(left, stack)
			}
		}
		if len(left) == 0 || time.Now().After(end) {
			return strings.Join(left, "\n\n")
		}
	}
}

func runJSON(t *testing.T, args ...string) *report {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, command(append(args, "-json"), &out))
	r := new(report)
	d := json.NewDecoder(&out)
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(r))
	require.True(t, r.SHA256OK)
	require.Len(t, r.Tunnels, 2)
	for _, of := range r.Tunnels {
		require.Positive(t, of.Bytes, of.Name)
		require.Greater(t, of.Encrypted, of.Bytes, of.Name)
	}
	return r
}

func TestBothTunnelsCarry(t *testing.T) {
	r := runJSON(t, "-bytes", "1000000", "-down=false")
	require.EqualValues(t, 1_000_000, r.Bytes)
}

// Of what the faster tunnel carried nothing arrived after a third of the whole.
func TestTransferOutlivesATunnel(t *testing.T) {
	r := runJSON(t, "-bytes", "3000000")
	require.EqualValues(t, 3_000_000, r.Bytes)
	require.Greater(t, r.Tunnels[1].Share, 0.5)
}

func TestTextShowsEveryTunnel(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, command([]string{"-bytes", "100000", "-down=false"}, &out))
	require.Contains(t, out.String(), "wg0")
	require.Contains(t, out.String(), "wg1")
	require.Contains(t, out.String(), "SHA-256 equal")
}

func TestOptionsSayWhatIsWrong(t *testing.T) {
	require.ErrorContains(t, command([]string{"-bytes=0"}, nil), "-bytes")
	require.ErrorContains(t, command([]string{"file"}, nil), "unexpected argument")
}
