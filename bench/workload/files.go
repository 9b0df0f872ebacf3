package workload

import (
	"time"

	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/sim"
)

// RequestSize is how many bytes ask for a file, an object or a segment: those
// of a usual HTTP request.
const RequestSize = 400

// Files downloads a list of files, one after another over one session.
type Files struct {
	Sizes []int64
	// Gap is the time from the end of a file to the next request.
	Gap time.Duration

	Times []time.Duration // from request to last byte, of the files that are there
	Err   bool            // the connection ended before the last one was
}

// Start begins with the first file. done, which may be nil, is called after the
// last one, or when the session fails; the session is left open.
func (f *Files) Start(s *sim.Sim, session *Session, done func()) {
	if len(f.Times) == len(f.Sizes) {
		if done != nil {
			done()
		}
		return
	}
	session.Do(RequestSize, f.Sizes[len(f.Times)], func(e *Exchange) {
		if f.Err = e.Failed; f.Err {
			if done != nil {
				done()
			}
			return
		}
		f.Times = append(f.Times, e.Duration())
		s.After(f.Gap, func() { f.Start(s, session, done) })
	})
}

// Asking sends requests of one size and waits for the response of another,
// again and again.
type Asking struct {
	Request, Response int64
	Think             time.Duration // from a response to the next request
	Latencies         []time.Duration
}

// Start begins to ask, until the session is closed or ends.
func (a *Asking) Start(s *sim.Sim, session *Session) {
	session.Do(a.Request, a.Response, func(e *Exchange) {
		if e.Failed {
			return
		}
		a.Latencies = append(a.Latencies, e.Duration())
		s.After(a.Think, func() { a.Start(s, session) })
	})
}

// Bulk is a transfer without an end: a background of long flows, or iperf.
type Bulk struct {
	Session  *Session
	exchange *Exchange
	start    mono.Time
}

// endless is more than any simulation transfers.
const endless = 1 << 60

// Upload begins to send to the server, until the session is closed by force or
// the simulation ends.
func Upload(session *Session) *Bulk {
	return &Bulk{Session: session, exchange: session.Do(endless, 0, nil), start: session.srv.sim.Now()}
}

// Download begins to receive from the server.
func Download(session *Session) *Bulk {
	return &Bulk{Session: session, exchange: session.Do(0, endless, nil), start: session.srv.sim.Now()}
}

// Received returns how many bytes the receiver has read so far.
func (b *Bulk) Received() int64 { return b.exchange.Received() }

// Stop aborts the connection.
func (b *Bulk) Stop() {
	b.Session.Client.Abort(b.Session.srv.sim.Now())
	b.Session.Client.Wake()
}

// Interval is a line of Iperf's report.
type Interval struct {
	End   time.Duration // since the beginning of the transfer
	Bytes int64         // read within the interval
}

// Rate returns the bits a second of an interval of a length.
func (i Interval) Rate(length time.Duration) float64 {
	return float64(i.Bytes) * 8 / length.Seconds()
}

// Report calls f at the end of each interval of the transfer from now on, as
// iperf -i does.
func (b *Bulk) Report(every time.Duration, f func(Interval)) {
	s := b.Session.srv.sim
	last := b.Received()
	s.Every(every, func() bool {
		now := b.Received()
		f(Interval{End: s.Now().Sub(b.start), Bytes: now - last})
		last = now
		return !b.Session.Over()
	})
}
