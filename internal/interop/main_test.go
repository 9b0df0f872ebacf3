//go:build linux

// Package interop has no code, only tests: our hosts against Linux's own
// MPTCP, curl, nginx and tshark.
//
// They run when MPTCP_INTEROP=1 is set, need root, and then fail rather than
// skip when something is missing. Each test re-executes itself in a network
// namespace of its own, where our host sits on two TUN links and the kernel,
// with an address on each, is the peer: no packet leaves the namespace, and the
// kernel's counters start at 0.
package interop

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	envGate   = "MPTCP_INTEROP"        // 1 = run these tests
	envInside = "MPTCP_INTEROP_INSIDE" // 1 = this process has its own namespace
	envKeep   = "MPTCP_INTEROP_KEEP"   // a directory to keep the captures in
)

// TestMain lets more of the tests that may run at once do so than there are
// processors, unless -parallel is given: they mostly wait.
func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		flag.Set("test.parallel", strconv.Itoa(3*runtime.GOMAXPROCS(0)))
	}
	os.Exit(m.Run())
}

// isolated runs body in a copy of this test that has a network namespace of
// its own and at most limit of time.
func isolated(t *testing.T, limit time.Duration, body func(t *testing.T)) {
	t.Helper()
	if os.Getenv(envInside) == "1" {
		body(t)
		return
	}
	if os.Getenv(envGate) != "1" {
		t.Skipf("set %s=1 to run, as root", envGate)
	}
	requireHost(t)

	ctx, cancel := context.WithTimeout(context.Background(), limit+10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/proc/self/exe", "-test.run="+only(t.Name()), "-test.v", "-test.timeout="+limit.String())
	cmd.Env = append(os.Environ(), envInside+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	t.Logf("in its own namespace:\n%s", out)
	require.NoError(t, err)
	require.Contains(t, string(out), "--- PASS: "+t.Name(), "the copy ran no test")
}

// only is the -test.run pattern of one test, subtests apart.
func only(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return strings.Join(parts, "/")
}

// requireHost fails the test unless this machine can run it.
func requireHost(t *testing.T) {
	t.Helper()
	require.Zero(t, os.Getuid(), "must run as root")
	_, err := os.Stat("/dev/net/tun")
	require.NoError(t, err, "must have TUN")
	enabled, err := os.ReadFile("/proc/sys/net/mptcp/enabled")
	require.NoError(t, err, "the kernel must have MPTCP")
	require.Equal(t, "1", strings.TrimSpace(string(enabled)), "net.mptcp.enabled")
	program(t, "ip")
}

// program returns the path of a program that must be installed.
func program(t *testing.T, name string) string {
	t.Helper()
	if p, err := exec.LookPath(name); err == nil {
		return p
	}
	for _, dir := range []string{"/usr/sbin/", "/sbin/"} {
		if _, err := os.Stat(dir + name); err == nil {
			return dir + name
		}
	}
	require.FailNow(t, name+" is not installed")
	return ""
}

// run runs a command that must succeed within a minute, and returns what it
// printed.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, program(t, name), args...).CombinedOutput()
	require.NoError(t, err, "%s %s: %s", name, strings.Join(args, " "), out)
	return string(out)
}

// ip runs ip with the words of line.
func ip(t *testing.T, line string) { t.Helper(); run(t, "ip", strings.Fields(line)...) }
