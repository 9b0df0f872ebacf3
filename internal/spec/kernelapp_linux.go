package spec

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"
)

// kernelApp is a socket of the kernel target.
type kernelApp struct {
	ready chan struct{} // closed once conn or err is set
	conn  *net.TCPConn
	err   error
	work  chan func() // writes and closes, in order
}

// adopt makes the application of a connection; nil is one that Dial will
// bring.
func (t *kernel) adopt(c net.Conn) *kernelApp {
	a := &kernelApp{ready: make(chan struct{}), work: make(chan func(), 64)}
	t.apps = append(t.apps, a)
	if c != nil {
		a.connected(c, nil)
	}
	go func() {
		<-a.ready
		for f := range a.work {
			if a.conn != nil {
				f()
			}
		}
	}()
	return a
}

func (a *kernelApp) connected(c net.Conn, err error) {
	if c != nil {
		a.conn = c.(*net.TCPConn)
	}
	a.err = err
	close(a.ready)
}

func (a *kernelApp) Write(p []byte) error {
	a.work <- func() { _, _ = a.conn.Write(p) }
	return nil
}

func (a *kernelApp) Read(n int, within time.Duration) ([]byte, error) {
	end := time.Now().Add(within)
	select {
	case <-a.ready:
	case <-time.After(within):
		return nil, nil
	}
	if a.err != nil {
		return nil, readError(a.err)
	}
	if err := a.conn.SetReadDeadline(end); err != nil {
		return nil, err
	}
	buf := make([]byte, n)
	m, err := io.ReadFull(a.conn, buf)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return buf[:m], readError(err)
}

// readError puts an error of a socket into the terms of App.
func readError(err error) error {
	switch {
	case err == nil, errors.Is(err, os.ErrDeadlineExceeded):
		return nil
	case errors.Is(err, io.EOF):
		return io.EOF
	case errors.Is(err, syscall.ETIMEDOUT):
		return ErrTimeout
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.EPIPE),
		errors.Is(err, syscall.ECONNABORTED):
		return ErrReset
	}
	return err
}

func (a *kernelApp) CloseWrite() error {
	a.work <- func() { a.conn.CloseWrite() }
	return nil
}

func (a *kernelApp) Close() error {
	a.work <- func() { a.conn.Close() }
	return nil
}

func (a *kernelApp) Abort() error {
	a.work <- func() {
		_ = a.conn.SetLinger(0)
		a.conn.Close()
	}
	return nil
}

func (a *kernelApp) CloseSubflow(netip.AddrPort) error { return ErrUnsupported }

// release ends the socket whatever it is at.
func (a *kernelApp) release() {
	close(a.work)
	go func() {
		<-a.ready
		if a.conn != nil {
			a.conn.Close()
		}
	}()
}
