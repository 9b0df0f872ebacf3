package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"
)

// A connection begins with what the client asks for: which side sends, and for
// how many milliseconds. The sender then closes its side; a server that
// received tells how many bytes it got before it closes its own.
type request [5]byte

const (
	clientSends = 'C'
	serverSends = 'S'
)

func newRequest(o *options) (r request) {
	r[0] = clientSends
	if o.reverse {
		r[0] = serverSends
	}
	binary.BigEndian.PutUint32(r[1:], uint32(min(o.duration.Milliseconds(), 1<<32-1)))
	return r
}

func (r request) duration() time.Duration {
	return time.Duration(binary.BigEndian.Uint32(r[1:])) * time.Millisecond
}

// chunk is how many bytes are written and read at a time.
const chunk = 256 << 10

// conn is a connection that can be closed in one direction.
type conn interface {
	net.Conn
	CloseWrite() error
}

// serve answers connections until the listener is closed.
func serve(l net.Listener, log io.Writer) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			if err := errors.Join(answer(c.(conn)), c.Close()); err != nil {
				fmt.Fprintf(log, "%v: %v\n", c.RemoteAddr(), err)
			}
		}()
	}
}

func answer(c conn) error {
	var r request
	if _, err := io.ReadFull(c, r[:]); err != nil {
		return err
	}
	switch r[0] {
	case clientSends:
		var n atomic.Int64
		if err := receive(c, &n); err != nil {
			return err
		}
		if err := binary.Write(c, binary.BigEndian, n.Load()); err != nil {
			return err
		}
	case serverSends:
		if err := send(c, r.duration(), new(atomic.Int64)); err != nil {
			return err
		}
	default:
		return fmt.Errorf("request %q is none", r[0])
	}
	if err := c.CloseWrite(); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, c)
	return err
}

// send sends for a time and counts the bytes.
func send(c conn, d time.Duration, n *atomic.Int64) error {
	data := make([]byte, chunk)
	for end := time.Now().Add(d); time.Now().Before(end); {
		k, err := c.Write(data)
		n.Add(int64(k))
		if err != nil {
			return err
		}
	}
	return nil
}

// receive reads to the end and counts the bytes.
func receive(c conn, n *atomic.Int64) error {
	data := make([]byte, chunk)
	for {
		k, err := c.Read(data)
		n.Add(int64(k))
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// ask is the client's side of a connection. It returns once all bytes are
// where they were sent to, and their number.
func ask(c conn, o *options, n *atomic.Int64) (int64, error) {
	r := newRequest(o)
	if _, err := c.Write(r[:]); err != nil {
		return 0, err
	}
	if o.reverse {
		err := receive(c, n)
		return n.Load(), err
	}
	if err := send(c, o.duration, n); err != nil {
		return 0, err
	}
	if err := c.CloseWrite(); err != nil {
		return 0, err
	}
	var got int64
	if err := binary.Read(c, binary.BigEndian, &got); err != nil {
		return 0, err
	}
	if got != n.Load() {
		return got, fmt.Errorf("sent %d bytes, the server received %d", n.Load(), got)
	}
	return got, nil
}
