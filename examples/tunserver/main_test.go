package main

import (
	"bytes"
	"context"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/netstack"
)

func TestFileIsServedAndFetched(t *testing.T) {
	dir := t.TempDir()
	want := bytes.Repeat([]byte("some text\n"), 50_000)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), want, 0o600))
	synctest.Test(t, func(t *testing.T) {
		client, server := pair(t)
		defer client.Close()
		defer server.Close()
		l, err := server.Listen("tcp", ":8080")
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- serve(ctx, l, dir) }()

		var got bytes.Buffer
		var notes strings.Builder
		require.NoError(t, get(ctx, client, "http://10.10.1.1:8080/file", &got, &notes))
		require.Equal(t, want, got.Bytes())
		require.Contains(t, notes.String(), "500000 bytes")
		require.Contains(t, notes.String(), "over mp0")
		require.ErrorContains(t, get(ctx, client, "http://10.10.1.1:8080/none", io.Discard, io.Discard), "404")

		cancel()
		require.NoError(t, <-served)
	})
}

// pair returns two hosts with two links between them.
func pair(t *testing.T) (client, server *netstack.Host) {
	t.Helper()
	var hosts [2]*netstack.Host
	for i := range hosts {
		h, err := netstack.New(netstack.Config{})
		require.NoError(t, err)
		hosts[i] = h
	}
	for i, name := range []string{"mp0", "mp1"} {
		shape := netstack.Shape{Delay: 5 * time.Millisecond}
		a, b := netstack.NewPipe(netstack.PipeConfig{AB: shape, BA: shape})
		for k, end := range []*netstack.PipeEnd{a, b} {
			addr := netip.AddrFrom4([4]byte{10, 10, byte(i + 1), byte(2 - k)})
			require.NoError(t, hosts[k].AddLink(netstack.LinkConfig{
				Name: name, Link: end, Addrs: []netip.Prefix{netip.PrefixFrom(addr, 24)},
			}))
		}
	}
	return hosts[0], hosts[1]
}

func TestOptionsSayWhatIsWrong(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"-serve .", "-tun"},
		{"-tun mp0,10.1.1.2/24,10.1.1.1", "either -serve or -get"},
		{"-tun mp0,10.1.1.2/24,10.1.1.1 -serve . -get http://10.1.1.1/", "either -serve or -get"},
		{"-tun mp0,10.1.1.2/24 -serve .", "want name"},
		{"-tun mp0,10.1.1.2,10.1.1.1 -serve .", "10.1.1.2"},
		{"-tun mp0,10.1.1.2/24,10.2.1.1 -serve .", "10.2.1.1 must be"},
		{"-tun mp0,10.1.1.2/24,10.1.1.2 -serve .", "10.1.1.2 must be"},
		{"-tun mp0,10.1.1.2/24,10.1.1.1 -serve . more", "unexpected"},
	} {
		_, err := parse(strings.Fields(c.args), io.Discard)
		require.ErrorContains(t, err, c.want, c.args)
	}
}
