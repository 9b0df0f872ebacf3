package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"strconv"

	"github.com/gomptcp/gomptcp/mptcp"
)

// connKey is where a request's context holds its connection.
type connKey struct{}

// keepConn lets handlers find the connection of a request: it is for
// http.Server.ConnContext.
func keepConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// connOf returns the connection of a request, nil if it is not one of ours.
func connOf(r *http.Request) *mptcp.Conn {
	c, _ := r.Context().Value(connKey{}).(*mptcp.Conn)
	return c
}

// sized declares the size of each response that has a Content-Length to its
// connection before the first byte is written, so that schedulers and path
// managers that go by the size of a flow know it ("fsfs", "dems", "flowsize",
// "freeway"). A response without one takes back what was declared before it.
func sized(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := connOf(r)
		if c == nil {
			next.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(&sizedWriter{ResponseWriter: w, conn: c, empty: r.Method == http.MethodHead}, r)
	})
}

// sizedWriter is the http.ResponseWriter of a handler whose responses are
// declared.
type sizedWriter struct {
	http.ResponseWriter
	conn     *mptcp.Conn
	empty    bool // the response has no body, whatever its Content-Length
	declared bool
}

// WriteHeader implements http.ResponseWriter.
func (w *sizedWriter) WriteHeader(code int) {
	if code >= 200 { // not one that only goes before
		w.declare()
	}
	w.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (w *sizedWriter) Write(p []byte) (int, error) {
	w.declare()
	return w.ResponseWriter.Write(p)
}

// ReadFrom lets files and the like go to the connection in few large pieces.
func (w *sizedWriter) ReadFrom(r io.Reader) (int64, error) {
	w.declare()
	return io.Copy(w.ResponseWriter, r)
}

// Unwrap is for http.ResponseController.
func (w *sizedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// declare tells the connection how much will have been written to it with this
// response: what was, and the body. The head is not counted; it is short.
func (w *sizedWriter) declare() {
	if w.declared {
		return
	}
	w.declared = true
	length, err := strconv.ParseInt(w.Header().Get("Content-Length"), 10, 64)
	if err != nil || length <= 0 || w.empty {
		w.conn.SetFlowSize(0)
		return
	}
	i := w.conn.Info()
	w.conn.SetFlowSize(int64(i.BytesAcked) + int64(i.Unacked) + int64(i.Unsent) + length)
}
