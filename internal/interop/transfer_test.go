//go:build linux

package interop

import (
	"crypto/sha256"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const mebi = 1 << 20

// payload is a stream of n bytes that look random and are the same for the
// same seed.
func payload(n int64, seed byte) io.Reader {
	return io.LimitReader(rand.NewChaCha8([32]byte{seed}), n)
}

// halfCloser is a connection with a half close, as ours and the kernel's are.
type halfCloser interface {
	net.Conn
	CloseWrite() error
}

// received is what the reading side of a transfer saw.
type received struct {
	n   int64
	sum [sha256.Size]byte
	err error
}

// midway calls do once when half of the n bytes of r are read.
func midway(r io.Reader, n int64, do func()) io.Reader {
	return io.MultiReader(io.LimitReader(r, n/2), readerFunc(func([]byte) (int, error) {
		do()
		return 0, io.EOF
	}), r)
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// send writes what src gives in pieces of 64 KiB, then closes the writing
// side.
func send(c halfCloser, src io.Reader) error {
	// The wrapping hides ReadFrom, so that sizes are the same for any peer.
	if _, err := io.CopyBuffer(struct{ io.Writer }{c}, struct{ io.Reader }{src}, make([]byte, 64<<10)); err != nil {
		return err
	}
	return c.CloseWrite()
}

// receive reads to the end of the stream.
func receive(r io.Reader) received {
	h := sha256.New()
	n, err := io.CopyBuffer(h, struct{ io.Reader }{r}, make([]byte, 64<<10))
	got := received{n: n, err: err}
	h.Sum(got.sum[:0])
	return got
}

// requireWhole checks that got is n bytes of the seed's payload.
func requireWhole(t *testing.T, what string, got received, n int64, seed byte) {
	t.Helper()
	require.NoError(t, got.err, what)
	require.Equal(t, n, got.n, what)
	require.Equal(t, receive(payload(n, seed)).sum, got.sum, "%s: SHA-256", what)
}

// Seeds of the two directions.
const (
	clientSeed = 1
	serverSeed = 2
)

// serve plays the server of a transfer: it receives all that the client
// sends, then answers with n bytes.
func serve(c halfCloser, n int64) received {
	defer c.Close()
	got := receive(c)
	if got.err != nil {
		return got
	}
	if err := send(c, payload(n, serverSeed)); err != nil {
		got.err = err
		return got
	}
	// Wait for the client to close, so that nothing is reset early.
	if _, err := c.Read(make([]byte, 1)); err != nil && err != io.EOF {
		got.err = err
	}
	return got
}

// exchange plays the client: n bytes to the server, then n bytes back, each
// way checked.
func exchange(t *testing.T, client halfCloser, server <-chan received, n int64) {
	t.Helper()
	exchangeCutting(t, client, server, n, func() {})
}

// exchangeCutting is exchange with something that happens when half of the
// first way is written.
func exchangeCutting(t *testing.T, client halfCloser, server <-chan received, n int64, cut func()) {
	t.Helper()
	defer client.Close()
	start := time.Now()
	require.NoError(t, send(client, midway(payload(n, clientSeed), n, cut)))
	got := receive(client)
	requireWhole(t, "server to client", got, n, serverSeed)
	took := time.Since(start).Seconds()
	t.Logf("%d MiB each way in %.1f s: %.1f Mb/s", n/mebi, took, float64(2*8*n)/took/1e6)
	require.NoError(t, client.Close())
	select {
	case got := <-server:
		requireWhole(t, "client to server", got, n, clientSeed)
	case <-time.After(10 * time.Second):
		require.FailNow(t, "the server did not finish")
	}
}
