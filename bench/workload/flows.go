package workload

import (
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/gomptcp/gomptcp/internal/host"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/sim"
)

// Poisson calls f at the times of a Poisson process, from now on, until so much
// time has passed. All times are drawn from rng in their order. rate is in
// events a second; 0 or less means none.
func Poisson(s *sim.Sim, rng *rand.Rand, rate float64, until time.Duration, f func(i int)) {
	if rate <= 0 {
		return
	}
	end := s.Now().Add(until)
	at := s.Now()
	var next func(i int)
	next = func(i int) {
		at = at.Add(time.Duration(rng.ExpFloat64() / rate * float64(time.Second)))
		if at >= end {
			return
		}
		s.After(at.Sub(s.Now()), func() {
			f(i)
			next(i + 1)
		})
	}
	next(0)
}

// Flow is a connection that sends a number of bytes and ends.
type Flow struct {
	Index int
	Size  int64
	Start mono.Time // when it was begun, handshake included
	End   mono.Time // when the receiver had read the last byte; 0 = not yet, or never
	Err   error     // it could not be begun
	Lost  bool      // its connection ended before

	Session *Session // until the flow is complete
}

// FCT returns the flow completion time; 0 if the flow is not complete.
func (f *Flow) FCT() time.Duration {
	if f.End == 0 {
		return 0
	}
	return f.End.Sub(f.Start)
}

// Received returns how many of the flow's bytes the receiver has read.
func (f *Flow) Received() int64 {
	if f.End != 0 {
		return f.Size
	}
	if f.Session == nil || len(f.Session.queue) == 0 {
		return 0
	}
	return f.Session.queue[0].read
}

// Send begins a connection from node to the server that sends f.Size bytes and
// ends; f.End is set when they have arrived. done may be nil.
func (srv *Server) Send(node *sim.Node, local netip.AddrPort, conn host.ConnConfig, f *Flow, done func(*Flow)) {
	f.Start = srv.sim.Now()
	f.Session, f.Err = srv.Open(node, local, conn)
	if f.Err != nil {
		return
	}
	f.Session.Do(f.Size, 0, func(e *Exchange) {
		f.End, f.Lost, f.Session = e.Done, e.Failed, nil
		if done != nil {
			done(f)
		}
	})
	f.Session.Close()
}

// Flows are flows that arrive as a Poisson process, each with a size of its
// own.
type Flows struct {
	Rate  float64 // flows a second
	Sizes Sizes
	Rand  *rand.Rand

	All []*Flow // those that have begun, in order
}

// Start lets flows arrive from now on until so much time has passed. begin
// begins each, usually by Server.Send.
func (fs *Flows) Start(s *sim.Sim, until time.Duration, begin func(*Flow)) {
	// Sizes come from a source of their own, so that the i-th flow has the same
	// size whatever the rate.
	sizes := rand.New(rand.NewPCG(fs.Rand.Uint64(), 1))
	Poisson(s, fs.Rand, fs.Rate, until, func(i int) {
		f := &Flow{Index: i, Size: fs.Sizes.Draw(sizes), Start: s.Now()}
		fs.All = append(fs.All, f)
		begin(f)
	})
}

// Begun returns the flows that began between from and to after the simulation
// did.
func (fs *Flows) Begun(from, to time.Duration) (begun []*Flow) {
	const epoch = mono.Time(time.Second)
	for _, f := range fs.All {
		if at := f.Start.Sub(epoch); at >= from && at < to {
			begun = append(begun, f)
		}
	}
	return begun
}

// Complete returns those of them that are complete, and how many are not.
func (fs *Flows) Complete(from, to time.Duration) (done []*Flow, open int) {
	for _, f := range fs.Begun(from, to) {
		if f.End == 0 {
			open++
			continue
		}
		done = append(done, f)
	}
	return done, open
}
