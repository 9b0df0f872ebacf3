package netstack

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// setUp switches an interface of the calling thread's network namespace on or
// off.
func setUp(name string, up bool) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	r, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	if up {
		r.SetUint16(unix.IFF_UP)
	}
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r)
}

// In a network namespace of its own, the loopback interface is switched on and
// off; Watch hears of it long before it would look by itself.
func TestWatchHearsOfChanges(t *testing.T) {
	runtime.LockOSThread() // for good: the thread ends with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skip("needs the right to make a network namespace: ", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var seen []LinkState
	err := Watch(ctx, func(s LinkState) {
		if s.Name != "lo" {
			return // tunnel devices that some kernels make
		}
		seen = append(seen, s)
		switch n := len(seen); {
		case n == 1:
			require.NoError(t, setUp("lo", true))
		case s.Up && len(s.Addrs) == 2:
			require.NoError(t, setUp("lo", false))
		case n > 1 && !s.Up:
			cancel()
		}
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, state("lo", 1, false), seen[0])
	require.Contains(t, seen, state("lo", 1, true, "127.0.0.1/8", "::1/128"))
}
