//go:build linux

package interop

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// build compiles one of the examples and returns the program's path.
func build(t *testing.T, example string) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), example)
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, program(t, "go"), "build", "-o", bin, "../../examples/"+example).CombinedOutput()
	require.NoError(t, err, string(out))
	return bin
}

// start starts a program that the test ends, with SIGTERM, when it is over or
// when stop is called. It returns once the program prints ready on its standard
// error; "" does not wait.
func start(t *testing.T, cmd *exec.Cmd, ready string) (stop func()) {
	t.Helper()
	notes, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	said, over := make(chan struct{}), make(chan struct{})
	var all strings.Builder
	go func() {
		defer close(over)
		lines := bufio.NewScanner(notes)
		for lines.Scan() {
			all.WriteString(lines.Text() + "\n")
			if ready != "" && strings.Contains(lines.Text(), ready) {
				close(said)
				ready = ""
			}
		}
		cmd.Wait()
	}()
	stop = func() {
		if over == nil {
			return
		}
		cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-over:
		case <-time.After(10 * time.Second):
			t.Errorf("%s does not end", cmd.Path)
			cmd.Process.Kill()
			<-over
		}
		over = nil
		t.Logf("%s said:\n%s", filepath.Base(cmd.Path), all.String())
	}
	t.Cleanup(stop)
	if ready == "" {
		return stop
	}
	select {
	case <-said:
	case <-over:
		require.FailNow(t, "program ended early", "%v: %s", cmd, all.String())
	case <-time.After(20 * time.Second):
		require.FailNow(t, "program does not become ready", "%v: %s", cmd, all.String())
	}
	return stop
}

// waitForPort returns once the kernel accepts connections at address.
func waitForPort(t *testing.T, address string) {
	t.Helper()
	require.Eventually(t, func() bool {
		c, err := net.DialTimeout("tcp", address, time.Second)
		if err != nil {
			return false
		}
		c.Close()
		return true
	}, 10*time.Second, 20*time.Millisecond, "nobody listens on %s", address)
}

// download is the size of the files that curl and nginx carry.
const download = 32 * mebi

// writeFile makes a file of n bytes named file in a new directory.
func writeFile(t *testing.T, n int64) (dir string) {
	t.Helper()
	dir = t.TempDir()
	f, err := os.Create(filepath.Join(dir, "file"))
	require.NoError(t, err)
	_, err = io.Copy(f, payload(n, serverSeed))
	require.NoError(t, err)
	require.NoError(t, f.Close())
	return dir
}

// requireFile checks that a file is what writeFile wrote.
func requireFile(t *testing.T, name string, n int64) {
	t.Helper()
	f, err := os.Open(name)
	require.NoError(t, err)
	defer f.Close()
	requireWhole(t, name, receive(f), n, serverSeed)
}

// tunLinks are the links of the examples' programs, in the networks of a rig.
func tunLinks() []string {
	return []string{"-tun", "tun1,10.10.1.2/24,10.10.1.1", "-tun", "tun2,10.10.2.2/24,10.10.2.1"}
}

func TestCurlDownloadsFromOurServer(t *testing.T) {
	isolated(t, 2*time.Minute, func(t *testing.T) {
		ip(t, "link set lo up")
		ip(t, "mptcp limits set subflows 8 add_addr_accepted 8")
		dir, out := writeFile(t, download), t.TempDir()
		capture := filepath.Join(out, "capture.pcapng")
		server := exec.Command(build(t, "tunserver"), append(tunLinks(), "-serve", dir, "-listen", fmt.Sprintf(":%d", port), "-pcap", capture)...)
		stop := start(t, server, "serving")
		url := "http://" + at(ipv4.addr(1, ours)) + "/file"

		run(t, "mptcpize", "run", program(t, "curl"), "-sSf", "-o", filepath.Join(out, "multipath"), url)
		requireFile(t, filepath.Join(out, "multipath"), download)
		got := kernelCounters(t)
		logCounters(t, got)
		require.Equal(t, 1, got["MPCapableSYNACKRX"])
		require.Equal(t, 1, got["MPJoinSynAckRx"])
		requireNoFaults(t, got)

		run(t, "curl", "-sSf", "-o", filepath.Join(out, "plain"), url)
		requireFile(t, filepath.Join(out, "plain"), download)
		require.Equal(t, 1, kernelCounters(t)["MPCapableSYNTX"], "curl alone uses plain TCP")
		stop()
		requireCleanFile(t, capture, true)
	})
}

// nginxConf serves the files of a directory on any address.
const nginxConf = `
daemon off;
user root;
worker_processes 1;
error_log stderr;
pid nginx.pid;
events {}
http {
	access_log off;
	client_body_temp_path body;
	proxy_temp_path proxy;
	fastcgi_temp_path fastcgi;
	uwsgi_temp_path uwsgi;
	scgi_temp_path scgi;
	server {
		listen 8000;
		root DIRECTORY;
	}
}
`

// nginxArgs configures an nginx in the foreground that serves a directory.
func nginxArgs(t *testing.T, dir string) []string {
	t.Helper()
	prefix := t.TempDir()
	conf := filepath.Join(prefix, "nginx.conf")
	require.NoError(t, os.WriteFile(conf, []byte(strings.ReplaceAll(nginxConf, "DIRECTORY", dir)), 0o600))
	return []string{"-p", prefix, "-c", conf}
}

func TestOurClientDownloadsFromNginx(t *testing.T) {
	isolated(t, 2*time.Minute, func(t *testing.T) {
		ip(t, "link set lo up")
		ip(t, "mptcp limits set subflows 8 add_addr_accepted 8")
		ip(t, "mptcp endpoint add 10.10.2.1 signal")
		dir, out := writeFile(t, download), t.TempDir()
		nginx := append([]string{"run", program(t, "nginx")}, nginxArgs(t, dir)...)
		start(t, exec.Command(program(t, "mptcpize"), nginx...), "")
		waitForPort(t, fmt.Sprintf("127.0.0.1:%d", port))

		capture, file := filepath.Join(out, "capture.pcapng"), filepath.Join(out, "file")
		before := kernelCounters(t)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		client := exec.CommandContext(ctx, build(t, "tunserver"),
			append(tunLinks(), "-get", "http://10.10.1.1:8000/file", "-o", file, "-pcap", capture)...)
		notes, err := client.CombinedOutput()
		require.NoError(t, err, string(notes))
		t.Logf("client said:\n%s", notes)
		requireFile(t, file, download)
		got := kernelCounters(t)
		logCounters(t, got)
		require.Equal(t, before["MPCapableACKRX"]+1, got["MPCapableACKRX"])
		require.Equal(t, 1, got["MPJoinAckRx"])
		requireNoFaults(t, got)
		requireCleanFile(t, capture, true)
	})
}
