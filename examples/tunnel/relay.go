package main

import (
	"io"
	"time"
)

// half is one side of a flow: a connection of the application, of MPTCP or of
// the server's kernel.
type half interface {
	io.ReadWriteCloser
	CloseWrite() error
	SetLinger(seconds int) error
	SetDeadline(t time.Time) error
}

// relay copies both ways until both directions have ended, and closes both
// sides. The end of one direction is passed on while the other goes on. If
// either side fails, both are reset.
func relay(a, b half) error {
	done := make(chan error, 2)
	forward := func(dst, src half) {
		_, err := io.Copy(dst, src)
		if err == nil {
			err = dst.CloseWrite()
		}
		done <- err
	}
	go forward(a, b)
	go forward(b, a)
	err := <-done
	if err != nil {
		reset(a)
		reset(b)
		<-done
		return err
	}
	if err = <-done; err != nil {
		reset(a)
		reset(b)
		return err
	}
	a.Close()
	b.Close()
	return nil
}

// reset ends a side so that its peer sees an error, not the end of the stream.
func reset(h half) {
	h.SetLinger(0)
	h.Close()
}

// slots bounds how many flows there are.
type slots chan struct{}

// take reports whether there was room for one more.
func (s slots) take() bool {
	select {
	case s <- struct{}{}:
		return true
	default:
		return false
	}
}

func (s slots) give() { <-s }

// wait waits until all are given back, and leaves none to take.
func (s slots) wait() {
	for range cap(s) {
		s <- struct{}{}
	}
}
