package workload

import (
	"math/rand/v2"
	"time"

	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/sim"
)

// Object is a part of a Page.
type Object struct {
	Size  int64
	After int // index of the object that names it, which must come before; -1 for the first
}

// Page is a web page: objects that can be asked for as soon as the one that
// names them is there.
type Page []Object

// RandomPage returns a page of n objects whose sizes are lognormal with a
// median of 12 KB and sigma 1.5, between 0.5 KB and 1 MB. All others are named
// by the first one, the HTML.
func RandomPage(rng *rand.Rand, n int) Page {
	sizes := Lognormal{Median: 12e3, Sigma: 1.5, Low: 500, High: 1e6}
	p := make(Page, n)
	for i := range p {
		p[i] = Object{Size: sizes.Draw(rng)}
	}
	p[0].After = -1
	return p
}

// Bytes returns the size of all objects.
func (p Page) Bytes() (n int64) {
	for _, o := range p {
		n += o.Size
	}
	return n
}

// Load is a page being loaded over one or more sessions, an object at a time on
// each, as browsers do with HTTP/1.1. A session is opened when an object waits
// and all others are busy.
type Load struct {
	Page  Page
	Conns int // sessions at most
	// Open makes a session.
	Open func() (*Session, error)

	Objects []time.Duration // from the beginning to the last byte of each; 0 = not there
	Time    time.Duration   // of the whole page; 0 = not there
	Err     error           // a session could not be opened
	Failed  bool            // one ended before its object was there

	sim     *sim.Sim
	start   mono.Time
	opened  int
	free    []*Session // with nothing to do, the longest idle first
	ready   []int      // objects that can be asked for
	missing int
	done    func()
}

// Start begins to load. done, which may be nil, is called when all is there;
// the sessions are then closed.
func (l *Load) Start(s *sim.Sim, done func()) {
	l.sim, l.start, l.done = s, s.Now(), done
	l.Objects, l.missing = make([]time.Duration, len(l.Page)), len(l.Page)
	l.release(-1)
}

// release makes the objects that one names ready and asks for what it can.
func (l *Load) release(named int) {
	for i, o := range l.Page {
		if o.After == named {
			l.ready = append(l.ready, i)
		}
	}
	for len(l.ready) > 0 {
		session := l.session()
		if session == nil {
			return
		}
		l.get(session, l.ready[0])
		l.ready = l.ready[1:]
	}
}

// session returns one that can be used, nil if there is none.
func (l *Load) session() *Session {
	if n := len(l.free); n > 0 {
		session := l.free[0]
		l.free = l.free[1:]
		return session
	}
	if l.opened >= l.Conns || l.Err != nil {
		return nil
	}
	l.opened++
	session, err := l.Open()
	l.Err = err
	return session
}

func (l *Load) get(session *Session, object int) {
	session.Do(RequestSize, l.Page[object].Size, func(e *Exchange) {
		if e.Failed {
			l.Failed = true
			return
		}
		l.Objects[object] = e.Done.Sub(l.start)
		l.free = append(l.free, session)
		if l.missing--; l.missing > 0 {
			l.sim.After(0, func() { l.release(object) })
			return
		}
		l.Time = l.Objects[object]
		for _, idle := range l.free {
			idle.Close()
		}
		if l.done != nil {
			l.done()
		}
	})
}
