package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gomptcp/gomptcp/mptcp"
)

// span is what happened in an interval, or in all.
type span struct {
	Start         float64          `json:"start"` // seconds
	End           float64          `json:"end"`
	Bytes         int64            `json:"bytes"` // of all connections, in the direction that is measured
	BitsPerSecond float64          `json:"bits_per_second"`
	Paths         map[string]int64 `json:"paths,omitempty"` // bytes by link, where it is known
}

// result is what a client found.
type result struct {
	Connections int     `json:"connections"`
	Reverse     bool    `json:"reverse"`
	MPTCP       bool    `json:"mptcp"` // all connections spoke it
	Intervals   []span  `json:"intervals"`
	Total       span    `json:"total"`
	PerConn     []int64 `json:"bytes_by_connection"`
}

// meter watches connections.
type meter struct {
	conns   []conn
	counts  []atomic.Int64
	reverse bool
	begin   time.Time

	at    time.Time // of the last look
	bytes int64
	paths map[string]int64
}

// look returns what happened since the last look.
func (m *meter) look() span {
	now, bytes, paths := time.Now(), int64(0), m.byPath()
	for i := range m.counts {
		bytes += m.counts[i].Load()
	}
	s := newSpan(m.at.Sub(m.begin), now.Sub(m.begin), bytes-m.bytes)
	for name, n := range paths {
		if s.Paths == nil {
			s.Paths = make(map[string]int64)
		}
		s.Paths[name] = n - m.paths[name]
	}
	m.at, m.bytes, m.paths = now, bytes, paths
	return s
}

func newSpan(start, end time.Duration, bytes int64) span {
	s := span{Start: start.Seconds(), End: end.Seconds(), Bytes: bytes}
	if end > start {
		s.BitsPerSecond = float64(bytes) * 8 / (end - start).Seconds()
	}
	return s
}

// byPath sums the payload that subflows of ours carried, by link.
func (m *meter) byPath() map[string]int64 {
	all := make(map[string]int64)
	for _, c := range m.conns {
		ours, ok := c.(*mptcp.Conn)
		if !ok {
			continue
		}
		for _, s := range ours.Subflows() {
			if m.reverse {
				all[s.Link] += int64(s.BytesReceived)
			} else {
				all[s.Link] += int64(s.BytesSent)
			}
		}
	}
	return all
}

// measure runs the client's connections and prints a line an interval, unless
// the result is to be JSON.
func (o *options) measure(ctx context.Context, client host, w io.Writer) (res *result, err error) {
	m := &meter{counts: make([]atomic.Int64, o.parallel), reverse: o.reverse}
	defer func() {
		for _, c := range m.conns {
			c.Close()
		}
	}()
	for range o.parallel {
		c, err := client.DialContext(ctx, "tcp", o.connect)
		if err != nil {
			return nil, err
		}
		m.conns = append(m.conns, c.(conn))
	}
	stop := context.AfterFunc(ctx, func() {
		for _, c := range m.conns {
			c.SetDeadline(time.Unix(1, 0))
		}
	})
	defer stop()
	m.begin = time.Now()
	m.at = m.begin
	res = &result{Connections: o.parallel, Reverse: o.reverse, PerConn: make([]int64, o.parallel)}
	done := make(chan error, o.parallel)
	for i, c := range m.conns {
		go func() {
			var err error
			res.PerConn[i], err = ask(c, o, &m.counts[i])
			done <- err
		}()
	}
	var ticks <-chan time.Time
	if o.interval > 0 {
		t := time.NewTicker(o.interval)
		defer t.Stop()
		ticks = t.C
	}
	for left := o.parallel; left > 0; {
		select {
		case <-ticks:
			res.note(m.look(), o, w)
		case e := <-done:
			left--
			err = errors.Join(err, e)
		}
	}
	res.note(m.look(), o, w)
	res.conclude(m)
	return res, err
}

// note keeps an interval.
func (r *result) note(s span, o *options, w io.Writer) {
	r.Intervals = append(r.Intervals, s)
	if !o.json && o.interval > 0 {
		fmt.Fprintln(w, s)
	}
}

// conclude sums up.
func (r *result) conclude(m *meter) {
	r.Total = newSpan(0, m.at.Sub(m.begin), m.bytes)
	if len(m.paths) > 0 {
		r.Total.Paths = m.paths
	}
	r.MPTCP = true
	for _, c := range m.conns {
		is, err := c.(interface{ MultipathTCP() (bool, error) }).MultipathTCP()
		r.MPTCP = r.MPTCP && err == nil && is
	}
}

// String writes a line: times, bytes, rate, and the rate of each path.
func (s span) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%7.2f-%7.2f s %12d bytes %10s", s.Start, s.End, s.Bytes, rate(s.BitsPerSecond))
	for _, name := range slices.Sorted(maps.Keys(s.Paths)) {
		fmt.Fprintf(&b, "  %s %s", name, rate(float64(s.Paths[name])*8/max(s.End-s.Start, 1e-9)))
	}
	return b.String()
}

func rate(bits float64) string {
	if bits >= 1e9 {
		return fmt.Sprintf("%.2f Gb/s", bits/1e9)
	}
	return fmt.Sprintf("%.1f Mb/s", bits/1e6)
}

// print shows the end.
func (r *result) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(r)
	}
	_, err := fmt.Fprintf(w, "%v  total of %d, mptcp %t\n", r.Total, r.Connections, r.MPTCP)
	return err
}
