//go:build linux

package interop

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// linkRate is the rate of each of the tunnel's links, in bits a second.
const linkRate = 20e6

// far is a second network namespace, joined to this one by two links: a1-b1
// with the network 10.30.1.0/24 and a2-b2 with 10.30.2.0/24, this side being
// .1. Both directions have linkRate.
type far struct{ pid string }

func newFar(t *testing.T) far {
	t.Helper()
	holder := exec.Command(program(t, "sleep"), "600")
	holder.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	require.NoError(t, holder.Start())
	t.Cleanup(func() {
		holder.Process.Kill()
		holder.Wait()
	})
	f := far{strconv.Itoa(holder.Process.Pid)}
	ip(t, "link set lo up")
	f.ip(t, "link set lo up")
	for i := 1; i <= 2; i++ {
		ip(t, fmt.Sprintf("link add a%d type veth peer name b%d netns %s", i, i, f.pid))
		ip(t, fmt.Sprintf("address add 10.30.%d.1/24 dev a%d", i, i))
		ip(t, fmt.Sprintf("link set a%d up", i))
		f.ip(t, fmt.Sprintf("address add 10.30.%d.2/24 dev b%d", i, i))
		f.ip(t, fmt.Sprintf("link set b%d up", i))
		shape := fmt.Sprintf("qdisc add dev %%s root tbf rate %.0f burst 15000 limit 100000", linkRate)
		run(t, "tc", strings.Fields(fmt.Sprintf(shape, fmt.Sprintf("a%d", i)))...)
		f.run(t, "tc", strings.Fields(fmt.Sprintf(shape, fmt.Sprintf("b%d", i)))...)
		// The tunnel's server is reached over the link of its network, its
		// client likewise.
		ip(t, fmt.Sprintf("route add 10.21.%d.0/24 via 10.30.%d.2", i, i))
		f.ip(t, fmt.Sprintf("route add 10.20.%d.0/24 via 10.30.%d.1", i, i))
	}
	const forward = "echo 1 > /proc/sys/net/ipv4/ip_forward"
	run(t, "sh", "-c", forward)
	f.run(t, "sh", "-c", forward)
	return f
}

// args wraps a command so that it runs in the far namespace.
func (f far) args(t *testing.T, name string, args ...string) []string {
	t.Helper()
	return append([]string{"-t", f.pid, "-n", program(t, name)}, args...)
}

func (f far) run(t *testing.T, name string, args ...string) {
	t.Helper()
	run(t, "nsenter", f.args(t, name, args...)...)
}

func (f far) ip(t *testing.T, line string) { t.Helper(); f.run(t, "ip", strings.Fields(line)...) }

func (f far) start(t *testing.T, ready, name string, args ...string) {
	t.Helper()
	start(t, exec.Command(program(t, "nsenter"), f.args(t, name, args...)...), ready)
}

func TestCurlThroughTheTunnelUsesBothLinks(t *testing.T) {
	isolated(t, 2*time.Minute, func(t *testing.T) {
		f := newFar(t)
		f.ip(t, "address add 198.18.0.1/32 dev lo")
		dir := writeFile(t, download)
		f.start(t, "", "nginx", nginxArgs(t, dir)...)

		tunnel := build(t, "tunnel")
		f.start(t, "serving", tunnel, "server", "-link", "up1,10.21.1.2/24,10.21.1.1", "-link", "up2,10.21.2.2/24,10.21.2.1",
			"-listen", ":7000", "-allow", "198.18.0.1/32:8000")
		start(t, exec.Command(tunnel, "client", "-server", "10.21.1.2:7000",
			"-link", "up1,10.20.1.2/24,10.20.1.1,10.21.1.0/24", "-link", "up2,10.20.2.2/24,10.20.2.1,10.21.2.0/24",
			"-dev", "app0,198.19.0.1/24", "-route", "198.18.0.0/16"), "carrying")
		waitForPort(t, "198.18.0.1:8000")

		file := filepath.Join(t.TempDir(), "file")
		before := [2]int{receivedBytes(t, "a1"), receivedBytes(t, "a2")}
		begin := time.Now()
		run(t, "curl", "-sSf", "-o", file, "http://198.18.0.1:8000/file")
		rate := download * 8 / time.Since(begin).Seconds()
		t.Logf("%.1f Mb/s over two links of %.0f", rate/1e6, linkRate/1e6)
		requireFile(t, file, download)
		require.Greater(t, rate, 1.5*linkRate)
		for i, name := range []string{"a1", "a2"} {
			require.Greater(t, receivedBytes(t, name)-before[i], download/5, name)
		}

		// What is not on the server's list is refused, and quickly.
		_, err := net.DialTimeout("tcp", "198.18.0.1:8001", 10*time.Second)
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
	})
}

// receivedBytes is what a device of this namespace has received.
func receivedBytes(t *testing.T, device string) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/net/dev")
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		name, numbers, ok := strings.Cut(strings.TrimSpace(line), ":")
		if ok && name == device {
			n, err := strconv.Atoi(strings.Fields(numbers)[0])
			require.NoError(t, err)
			return n
		}
	}
	require.FailNow(t, "no device "+device)
	return 0
}
