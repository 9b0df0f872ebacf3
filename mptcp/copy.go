package mptcp

import (
	"io"
	"io/fs"
	"math"
	"sync"

	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/stream"
)

// copyChunk is the size of the buffers of ReadFrom and WriteTo: enough for a
// super-segment and to make the cost of a turn small beside that of a copy.
const copyChunk = 128 << 10

// borrowMin is how many bytes must lie in one piece for WriteTo to pass them
// on where they are. Smaller pieces are cheaper to copy than to pass one by
// one.
const borrowMin = 16 << 10

var copyPool = sync.Pool{New: func() any { return new([copyChunk]byte) }}

// ReadFrom writes what r has until io.EOF; io.Copy uses it. Other Writes wait
// only while a part is being written, not while r is being read.
//
// If r knows how much it has, as a file or what io.LimitReader returns does,
// and nobody declared the size of the flow, ReadFrom does; see SetFlowSize.
func (c *Conn) ReadFrom(r io.Reader) (int64, error) {
	if n := sizeOf(r); n > 0 {
		c.learnSize(n)
	}
	buf := copyPool.Get().(*[copyChunk]byte)
	defer copyPool.Put(buf)
	var total int64
	for {
		n, readErr := r.Read(buf[:])
		if n > 0 {
			n, err := c.writeAll(buf[:n])
			total += int64(n)
			if err != nil {
				return total, c.opError("write", err)
			}
		}
		if readErr == io.EOF {
			return total, nil
		}
		if readErr != nil {
			return total, readErr
		}
	}
}

// sizeOf returns how many bytes a reader has, at most; 0 = unknown.
func sizeOf(r io.Reader) int64 {
	switch r := r.(type) {
	case *io.LimitedReader:
		if n := sizeOf(r.R); n > 0 {
			return min(n, r.N)
		}
		return r.N
	case interface{ Len() int }: // bytes.Reader, bytes.Buffer, strings.Reader
		return int64(r.Len())
	case interface { // os.File, which io.Copy wraps
		io.Seeker
		Stat() (fs.FileInfo, error)
	}:
		at, err := r.Seek(0, io.SeekCurrent)
		if info, statErr := r.Stat(); err == nil && statErr == nil && info.Mode().IsRegular() {
			return max(info.Size()-at, 0)
		}
	}
	return 0
}

// learnSize notes that n more bytes will be written, unless the application
// has declared otherwise.
func (c *Conn) learnSize(n int64) {
	c.mu.Lock()
	defer c.unlock()
	if !c.sized && !c.dead && n <= math.MaxInt64-c.core.Written() {
		c.core.SetFlowSize(c.core.Written() + n)
	}
}

// WriteTo writes what arrives to w until the peer has closed its side; io.Copy
// uses it. Other Reads wait until it returns. Bytes that w did not take when
// it failed are lost.
func (c *Conn) WriteTo(w io.Writer) (int64, error) {
	if err := c.read.begin(&c.done); err != nil {
		return 0, c.opError("read", err)
	}
	defer c.read.end()
	var total int64
	for {
		var l loan
		_, err := c.awaitRead(nil, func(now mono.Time) int { l = c.lend(now); return 0 })
		if err == io.EOF {
			return total, nil
		}
		if err != nil {
			return total, c.opError("read", err)
		}
		n, err := l.writeTo(w)
		c.giveBack(l)
		total += int64(n)
		switch {
		case err != nil:
			return total, err
		case c.read.deadline.expired():
			return total, c.opError("read", errExpired)
		}
	}
}

// loan is received bytes on their way through WriteTo: either a piece of
// memory that was taken out of the receive queue, or a copy of several.
type loan struct {
	views [][]byte
	owner stream.Owner
	buf   *[copyChunk]byte
	n     int // bytes in buf
}

// lend takes bytes out of the receive queue, where there are some. c.mu must
// be held.
func (c *Conn) lend(now mono.Time) loan {
	if len(c.core.Peek()) >= borrowMin {
		views, owner := c.core.Pop(now)
		return loan{views: views, owner: owner}
	}
	buf := copyPool.Get().(*[copyChunk]byte)
	return loan{buf: buf, n: c.core.Read(now, buf[:])}
}

func (l *loan) writeTo(w io.Writer) (int, error) {
	if l.buf != nil {
		return writeFully(w, l.buf[:l.n])
	}
	total := 0
	for _, v := range l.views {
		n, err := writeFully(w, v)
		total += n
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// giveBack ends a loan. The receive queue wants its memory back under the lock
// that guards it.
func (c *Conn) giveBack(l loan) {
	if l.buf != nil {
		copyPool.Put(l.buf)
	}
	if l.owner != nil {
		c.mu.Lock()
		l.owner.DecRef()
		c.leave()
	}
}

func writeFully(w io.Writer, p []byte) (int, error) {
	n, err := w.Write(p)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	return n, err
}
