package main

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/mptcp"
	"github.com/gomptcp/gomptcp/scheduler"
)

func TestPageArrivesOverMPTCP(t *testing.T) {
	var out strings.Builder
	synctest.Test(t, func(t *testing.T) { require.NoError(t, run(&out)) })
	require.Equal(t, 3, strings.Count(out.String(), "you came by MPTCP over wifi"), out.String())
}

// While a response with a Content-Length is sent its scheduler knows how many
// bytes the flow will have; without one it does not.
func TestContentLengthIsTheFlowSize(t *testing.T) {
	const body = 300_000
	// What the scheduler saw while the latest response was sent.
	var declared, before atomic.Int64
	watch := func() scheduler.Scheduler {
		return scheduler.Func(func(v *scheduler.View) scheduler.Decision {
			if v.Ask == scheduler.Fresh {
				declared.Store(v.FlowSize)
				before.CompareAndSwap(-1, v.First)
			}
			return scheduler.LeastRTT(v)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		client, server, err := hosts()
		require.NoError(t, err)
		defer client.Close()
		defer server.Close()
		lc := mptcp.ListenConfig{Stack: server.Stack, Config: &mptcp.Config{Scheduler: watch}}
		l, err := lc.Listen(t.Context(), "mptcp", "10.0.1.2:80")
		require.NoError(t, err)
		web := &http.Server{ConnContext: keepConn, Handler: sized(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/known" {
				w.Header().Set("Content-Length", strconv.Itoa(body))
			}
			io.Copy(w, strings.NewReader(strings.Repeat("x", body)))
		}))}
		served := make(chan error, 1)
		go func() { served <- web.Serve(l) }()
		transport := &http.Transport{DialContext: client.DialContext}
		browser := &http.Client{Transport: transport}
		for _, path := range []string{"/known", "/unknown", "/known"} {
			before.Store(-1)
			var got strings.Builder
			require.NoError(t, fetch(browser, "http://10.0.1.2"+path, &got))
			require.Equal(t, body, got.Len())
			if path == "/known" {
				require.Equal(t, before.Load()+body, declared.Load())
			} else {
				require.Zero(t, declared.Load())
			}
		}
		require.Greater(t, before.Load(), int64(2*body), "the same connection")
		transport.CloseIdleConnections()
		require.NoError(t, web.Shutdown(context.Background()))
		require.ErrorIs(t, <-served, http.ErrServerClosed)
	})
}
