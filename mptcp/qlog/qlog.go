package qlog

import (
	"bufio"
	"encoding/json"
	"io"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/gomptcp/gomptcp/mptcp"
)

// Schema is the name of the event schema.
const Schema = "urn:gomptcp:qlog:mptcp-00"

// Config says what a trace is of. The zero Config is usable.
type Config struct {
	Title        string
	VantagePoint string // client, server, or another name; "" = unknown
	// Reference is the time that events count from; zero = now. Traces of both
	// ends are drawn on one axis if their clocks agree.
	Reference time.Time
	// Clock returns the time since Reference; nil = the system's.
	Clock func() time.Duration
}

// Writer writes a trace. Its methods may be called concurrently.
type Writer struct {
	clock func() time.Duration

	mu  sync.Mutex
	w   *bufio.Writer // guarded by mu
	buf []byte        // guarded by mu: reused by every event
	err error         // guarded by mu: the first
}

// New begins a trace in w with its heading.
func New(w io.Writer, cfg Config) *Writer {
	if cfg.Reference.IsZero() {
		cfg.Reference = time.Now()
	}
	if cfg.Clock == nil {
		cfg.Clock = func() time.Duration { return time.Since(cfg.Reference) }
	}
	if cfg.VantagePoint == "" {
		cfg.VantagePoint = "unknown"
	}
	q := &Writer{clock: cfg.Clock, w: bufio.NewWriterSize(w, 64<<10)}
	head, err := json.Marshal(heading{
		FileSchema: "urn:ietf:params:qlog:file:sequential", Format: "application/qlog+json-seq", Title: cfg.Title,
		Trace: traceHeading{
			VantagePoint: vantagePoint{cfg.VantagePoint}, Schemas: []string{Schema},
			Common: commonFields{
				TimeFormat: "relative_to_epoch",
				Reference:  referenceTime{"system", cfg.Reference.UTC().Format(time.RFC3339Nano)},
			},
		},
	})
	q.err = err
	q.record(head)
	return q
}

type heading struct {
	FileSchema string       `json:"file_schema"`
	Format     string       `json:"serialization_format"`
	Title      string       `json:"title,omitempty"`
	Trace      traceHeading `json:"trace"`
}

type traceHeading struct {
	VantagePoint vantagePoint `json:"vantage_point"`
	Schemas      []string     `json:"event_schemas"`
	Common       commonFields `json:"common_fields"`
}

type vantagePoint struct {
	Type string `json:"type"`
}

type commonFields struct {
	TimeFormat string        `json:"time_format"`
	Reference  referenceTime `json:"reference_time"`
}

type referenceTime struct {
	Clock string `json:"clock_type"`
	Epoch string `json:"epoch"`
}

// Flush writes what is buffered. It returns the first error there was.
func (q *Writer) Flush() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.w.Flush(); q.err == nil {
		q.err = err
	}
	return q.err
}

// recordSeparator begins each record (RFC 7464, Section 2.2).
const recordSeparator = 0x1e

// record writes one record. mu must be held, or nobody else know of q yet.
func (q *Writer) record(b []byte) {
	if q.err != nil {
		return
	}
	_ = q.w.WriteByte(recordSeparator) // the writer remembers its first error
	_, _ = q.w.Write(b)
	q.err = q.w.WriteByte('\n')
}

// event is one record under construction.
type event struct {
	b []byte
	n int // members of data so far
}

// emit writes an event whose data is what fill adds.
func (q *Writer) emit(name string, conn mptcp.ConnEvent, subflow int, fill func(e *event)) {
	at := q.clock()
	q.mu.Lock()
	defer q.mu.Unlock()
	b := append(q.buf[:0], `{"time":`...)
	b = strconv.AppendFloat(b, float64(at.Nanoseconds())/1e6, 'f', 6, 64)
	b = append(b, `,"name":"mptcp:`...)
	b = append(b, name...)
	b = append(b, `","group_id":"`...)
	b = appendAddr(b, conn.Local)
	b = append(b, '>')
	b = appendAddr(b, conn.Remote)
	if subflow >= 0 {
		b = append(b, `","path_id":"`...)
		b = strconv.AppendInt(b, int64(subflow), 10)
	}
	b = append(b, `","data":{`...)
	e := event{b: b}
	fill(&e)
	q.buf = append(e.b, "}}"...)
	q.record(q.buf)
}

func (e *event) key(k string) {
	if e.n++; e.n > 1 {
		e.b = append(e.b, ',')
	}
	e.b = append(e.b, '"')
	e.b = append(e.b, k...)
	e.b = append(e.b, '"', ':')
}

func (e *event) integer(k string, v int64) {
	e.key(k)
	e.b = strconv.AppendInt(e.b, v, 10)
}

func (e *event) ms(k string, d time.Duration) {
	if d > 0 {
		e.key(k)
		e.b = strconv.AppendFloat(e.b, float64(d.Microseconds())/1e3, 'f', -1, 64)
	}
}

func (e *event) rate(k string, v float64) {
	if v > 0 {
		e.integer(k, int64(v))
	}
}

// text adds a string; an empty one is left out.
func (e *event) text(k, s string) {
	if s == "" {
		return
	}
	quoted, err := json.Marshal(s)
	if err != nil {
		return
	}
	e.key(k)
	e.b = append(e.b, quoted...)
}

func (e *event) addr(k string, a netip.AddrPort) {
	e.key(k)
	e.b = append(e.b, '"')
	e.b = appendAddr(e.b, a)
	e.b = append(e.b, '"')
}

// appendAddr appends an address. What a zone is called needs no escapes in
// JSON: names of interfaces hold no quotes.
func appendAddr(b []byte, a netip.AddrPort) []byte {
	if !a.IsValid() {
		return append(b, '-')
	}
	return a.AppendTo(b)
}
