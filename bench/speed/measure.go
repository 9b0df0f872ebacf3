package speed

import (
	"errors"
	"io"
	"net"
	"runtime"
	"time"
)

// WriteSize is how many bytes a Write of a bulk transfer has, and a Read may
// take.
const WriteSize = 256 << 10

// Usage is what something took.
type Usage struct {
	Units float64 // bytes, round trips, connections
	Wall  time.Duration
	CPU   time.Duration // of the whole process; 0 = not known here
}

// PerSecond returns units a second.
func (u Usage) PerSecond() float64 { return u.Units / u.Wall.Seconds() }

// PerCPU returns units a second of processor time, which depends less on what
// else the machine does.
func (u Usage) PerCPU() float64 { return u.Units / u.CPU.Seconds() }

// meter begins a measurement.
func meter() func(units float64) Usage {
	start, cpu := time.Now(), CPUTime()
	return func(units float64) Usage {
		return Usage{Units: units, Wall: time.Since(start), CPU: CPUTime() - cpu}
	}
}

// Bulk sends from one end to the other, first unmeasured for a time, then for
// d, and closes both. The measurement ends when the last byte was read.
func Bulk(from, to net.Conn, warm, d time.Duration) (Usage, error) {
	received := make(chan error, 1)
	go func() { received <- drain(to) }()
	data := make([]byte, WriteSize)
	_, err := writeFor(from, data, warm)
	done := meter()
	n, again := writeFor(from, data, d)
	err = errors.Join(err, again)
	err = errors.Join(err, from.Close(), <-received)
	used := done(n)
	return used, errors.Join(err, to.Close())
}

// writeFor writes data again and again, and returns how many bytes that were.
func writeFor(to net.Conn, data []byte, d time.Duration) (n float64, err error) {
	for end := time.Now().Add(d); err == nil && time.Now().Before(end); n += float64(len(data)) {
		_, err = to.Write(data)
	}
	return n, err
}

// drain reads to the end.
func drain(c net.Conn) error { return drainTo(c, make([]byte, WriteSize)) }

func drainTo(c net.Conn, buf []byte) error {
	for {
		if _, err := c.Read(buf); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

// PingPong sends 64 bytes to and fro for a time and closes both ends. Its units
// are round trips.
func PingPong(client, server net.Conn, d time.Duration) (Usage, error) {
	echoed := make(chan error, 1)
	go func() {
		buf := make([]byte, 64)
		for {
			if _, err := io.ReadFull(server, buf); err != nil {
				echoed <- server.Close()
				return
			}
			if _, err := server.Write(buf); err != nil {
				echoed <- err
				return
			}
		}
	}()
	buf := make([]byte, 64)
	n := 0
	done := meter()
	var err error
	for end := time.Now().Add(d); err == nil && time.Now().Before(end); n++ {
		if _, err = client.Write(buf); err == nil {
			_, err = io.ReadFull(client, buf)
		}
	}
	used := done(float64(n))
	return used, errors.Join(err, client.Close(), <-echoed)
}

// Dials opens connections one after the other for a time: each is a dial, a
// byte to and fro, and a close by both sides. A connection of ours that is to
// have several subflows waits for them.
func Dials(r *Rig, d time.Duration) (Usage, error) {
	l, err := r.Listen(Port)
	if err != nil {
		return Usage{}, err
	}
	served := make(chan error, 1)
	go func() { served <- serveBytes(l) }()
	buf := make([]byte, 1)
	n := 0
	done := meter()
	for end := time.Now().Add(d); err == nil && time.Now().Before(end); n++ {
		err = dialOnce(r, buf)
	}
	used := done(float64(n))
	return used, errors.Join(err, l.Close(), <-served)
}

func dialOnce(r *Rig, buf []byte) error {
	c, err := r.Dial(Port)
	if err != nil {
		return err
	}
	if _, err = c.Write(buf); err == nil {
		_, err = io.ReadFull(c, buf)
	}
	if r.paths > 1 && err == nil {
		err = r.ready(c)
	}
	return errors.Join(err, c.Close())
}

// serveBytes returns a byte on each connection and closes it after the client
// did, until the listener is closed.
func serveBytes(l net.Listener) error {
	buf := make([]byte, 1)
	for {
		c, err := l.Accept()
		if err != nil {
			return nil
		}
		if _, err = io.ReadFull(c, buf); err == nil {
			if _, err = c.Write(buf); err == nil {
				err = drainTo(c, buf)
			}
		}
		if err = errors.Join(err, c.Close()); err != nil {
			return err
		}
	}
}

// Held are idle connections.
type Held struct {
	clients, servers []net.Conn
	// Bytes is the heap that a pair of them takes.
	Bytes float64
}

// Hold opens n connections, spread over ports so that none runs out of tuples,
// and keeps them idle.
func Hold(r *Rig, n int) (*Held, error) {
	const perPort = 20_000
	h := &Held{}
	before := heap()
	for len(h.clients) < n {
		port := 1000 + len(h.clients)/perPort
		l, err := r.Listen(port)
		if err != nil {
			return nil, errors.Join(err, h.Close())
		}
		for range min(perPort, n-len(h.clients)) {
			c, s, err := r.pair(l, port)
			if err != nil {
				return nil, errors.Join(err, l.Close(), h.Close())
			}
			h.clients, h.servers = append(h.clients, c), append(h.servers, s)
		}
		if err := l.Close(); err != nil {
			return nil, errors.Join(err, h.Close())
		}
	}
	time.Sleep(settle)
	h.Bytes = (heap() - before) / float64(n)
	return h, nil
}

// settle is how long connections are idle before their memory is measured: ours
// give up what they do not use after a second.
const settle = 1500 * time.Millisecond

// Close ends the connections.
func (h *Held) Close() error {
	var err error
	for _, conns := range [][]net.Conn{h.clients, h.servers} {
		for _, c := range conns {
			err = errors.Join(err, c.Close())
		}
	}
	return err
}

// heap returns the bytes of live heap objects.
func heap() float64 {
	var m runtime.MemStats
	for range 3 { // sync.Pools give up what they hold at the second
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// CopyRate is the bytes a second of copying 64 KiB at a time between two areas
// that no cache holds.
func CopyRate(d time.Duration) float64 {
	const area, step = 256 << 20, 64 << 10
	from, to := make([]byte, area), make([]byte, area)
	for i := 0; i < area; i += 4096 { // have pages that are not the zero page
		from[i], to[i] = 1, 1
	}
	done := meter()
	n := 0
	for at, end := 0, time.Now().Add(d); time.Now().Before(end); at = (at + step) % area {
		n += copy(to[at:at+step], from[at:at+step])
	}
	return done(float64(n)).PerSecond()
}
