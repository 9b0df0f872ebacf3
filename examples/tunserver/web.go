package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/gomptcp/gomptcp/mptcp"
	"github.com/gomptcp/gomptcp/netstack"
)

// serve answers requests for the files of dir until ctx ends.
func serve(ctx context.Context, l net.Listener, dir string) error {
	web := &http.Server{Handler: http.FileServer(http.Dir(dir)), ReadHeaderTimeout: 10 * time.Second}
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		grace, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		stopped <- web.Shutdown(grace)
	})
	defer stop()
	if err := web.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}

// get fetches a URL over host into out and says on notes what it took.
func get(ctx context.Context, host *netstack.Host, url string, out, notes io.Writer) error {
	var conn *mptcp.Conn
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := host.DialContext(ctx, network, address)
		conn, _ = c.(*mptcp.Conn)
		return c, err
	}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	start := time.Now()
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, answer.Status)
	}
	n, err := io.Copy(out, answer.Body)
	if err != nil {
		return err
	}
	took := time.Since(start).Seconds()
	fmt.Fprintf(notes, "%d bytes in %.2f s, %.1f Mb/s\n", n, took, float64(n)*8/took/1e6)
	if reason := conn.Info().Fallback; reason != "" {
		fmt.Fprintf(notes, "plain TCP: %s\n", reason)
	}
	for _, s := range conn.Subflows() {
		fmt.Fprintf(notes, "subflow %d over %s: %v to %v, %d bytes received\n", s.ID, s.Link, s.Local, s.Remote, s.BytesReceived)
	}
	return nil
}
