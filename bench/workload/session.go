package workload

import (
	"net/netip"
	"time"

	"github.com/gomptcp/gomptcp/internal/host"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/sim"
)

// chunk is how much is written or read at once, at most, in bytes.
const chunk = 64 << 10

// Server accepts Sessions at an address.
type Server struct {
	sim      *sim.Sim
	addr     netip.AddrPort
	waiting  map[netip.AddrPort]*Session // by the client's first address, until accepted
	listener *host.Listener
	buf      []byte // holds zeros, shared by all: one thing happens at a time
}

// NewServer makes node listen at addr, with room for 4096 connections that
// nobody has accepted.
func NewServer(s *sim.Sim, node *sim.Node, addr netip.AddrPort, conn host.ConnConfig) (*Server, error) {
	srv := &Server{sim: s, addr: addr, waiting: make(map[netip.AddrPort]*Session), buf: make([]byte, chunk)}
	l, err := node.Listen(addr, 4096, conn, srv.accept)
	srv.listener = l
	return srv, err
}

func (srv *Server) accept(c *sim.Conn) sim.App {
	s := srv.waiting[c.RemoteAddr()]
	if s == nil {
		return nil
	}
	delete(srv.waiting, c.RemoteAddr())
	s.Server = c
	return (*serverEnd)(s)
}

// Exchange is bytes to the server and bytes back.
type Exchange struct {
	Request, Response int64
	Asked             mono.Time // when Do was called
	Begun             mono.Time // when its first byte was written; 0 bytes: when it was its turn
	Arrived           mono.Time // when the server had read the request
	First             mono.Time // when the client read the response's first byte
	Done              mono.Time // when all was read; 0 = not yet, or failed
	Failed            bool      // the connection ended before

	sent, read         int64 // of the request
	answered, received int64 // of the response
	done               func(*Exchange)
}

// Received returns how many bytes of request and response were read so far.
func (e *Exchange) Received() int64 { return e.read + e.received }

// Duration returns the time from Do to the last byte.
func (e *Exchange) Duration() time.Duration { return e.Done.Sub(e.Asked) }

// Session is a connection to a Server.
type Session struct {
	Client *sim.Conn
	Server *sim.Conn // nil until accepted

	srv     *Server
	opened  mono.Time
	queue   []*Exchange // not yet done, in order
	closing bool        // Close was called
	shut    bool        // the client's end sends no more
	left    [2]bool     // the client's and the server's end are closed
	over    bool        // the connection has ended
}

// Open begins a connection from node to the server. A zero local address is
// chosen.
func (srv *Server) Open(node *sim.Node, local netip.AddrPort, conn host.ConnConfig) (*Session, error) {
	return srv.OpenTo(node, local, srv.addr, conn)
}

// OpenTo is Open to another of the server's addresses.
func (srv *Server) OpenTo(node *sim.Node, local, remote netip.AddrPort, conn host.ConnConfig) (*Session, error) {
	s := &Session{srv: srv, opened: srv.sim.Now()}
	c, err := node.Dial(local, remote, conn, (*clientEnd)(s))
	if err != nil {
		return nil, err
	}
	s.Client = c
	srv.waiting[c.LocalAddr()] = s
	return s, nil
}

// Opened returns when the connection was begun.
func (s *Session) Opened() mono.Time { return s.opened }

// Do asks for an exchange after those asked for before. done, which may be nil,
// is called once when it is done or has failed, and may call Do and Close.
func (s *Session) Do(request, response int64, done func(*Exchange)) *Exchange {
	e := &Exchange{Request: request, Response: response, Asked: s.srv.sim.Now(), done: done}
	if s.over || s.closing {
		e.fail()
		return e
	}
	s.queue = append(s.queue, e)
	if len(s.queue) == 1 && s.Client != nil {
		s.srv.sim.After(0, s.Client.Wake)
	}
	return e
}

// Close ends the connection when all exchanges are done.
func (s *Session) Close() {
	if !s.closing {
		s.closing = true
		s.srv.sim.After(0, s.Client.Wake)
	}
}

// Over reports whether the client's end of the connection has ended.
func (s *Session) Over() bool { return s.over }

func (e *Exchange) fail() {
	e.Failed = true
	if e.done != nil {
		e.done(e)
	}
}

// finish ends the first exchange if everything was read.
func (s *Session) finish(now mono.Time) bool {
	e := s.queue[0]
	if e.read < e.Request || e.received < e.Response {
		return false
	}
	e.Done = now
	s.queue = s.queue[1:]
	if e.done != nil {
		e.done(e)
	}
	return true
}

// end fails what is left when the connection is over.
func (s *Session) end() {
	if s.over {
		return
	}
	s.over = true
	delete(s.srv.waiting, s.Client.LocalAddr())
	left := s.queue
	s.queue = nil
	for _, e := range left {
		e.fail()
	}
}

// clientEnd is a Session as the client's App.
type clientEnd Session

// Ready implements sim.App.
func (ce *clientEnd) Ready(now mono.Time, c *sim.Conn) (acted bool) {
	s := (*Session)(ce)
	s.Client = c // Ready is called within Dial
	if c.Connected() {
		acted = s.read(now, c)
	}
	switch {
	case c.Closed():
		s.end()
		return acted
	case !c.Connected():
		return false
	}
	acted = s.ask(now, c) || acted
	switch {
	case !s.closing:
	case len(s.queue) == 0 && !s.left[0]:
		s.left[0] = true
		c.Close(now)
		return true
	case !s.shut && s.allSent():
		s.shut = true
		c.CloseWrite(now)
		return true
	}
	return acted
}

// allSent reports whether the client has nothing to send any more.
func (s *Session) allSent() bool {
	return len(s.queue) == 0 || len(s.queue) == 1 && s.queue[0].sent == s.queue[0].Request
}

// ask writes what is left of the first exchange's request.
func (s *Session) ask(now mono.Time, c *sim.Conn) (acted bool) {
	if len(s.queue) == 0 {
		return false
	}
	e := s.queue[0]
	if e.Begun == 0 {
		e.Begun = now
		if e.Request == 0 && s.Server != nil {
			// The server has nothing to wait for.
			s.srv.sim.After(0, s.Server.Wake)
		}
	}
	for e.sent < e.Request && c.WriteRoom() > 0 {
		n := c.Write(now, s.srv.buf[:min(chunk, e.Request-e.sent)])
		if n <= 0 {
			break
		}
		e.sent += int64(n)
		acted = true
	}
	return acted
}

// read takes the responses that arrived.
func (s *Session) read(now mono.Time, c *sim.Conn) (acted bool) {
	for c.Readable() > 0 {
		if len(s.queue) == 0 {
			return acted
		}
		e := s.queue[0]
		n := c.Read(now, s.srv.buf[:min(chunk, e.Response-e.received)])
		if n <= 0 {
			return acted
		}
		if e.First == 0 {
			e.First = now
		}
		e.received += int64(n)
		acted = true
		s.finish(now)
	}
	return acted
}

// serverEnd is a Session as the server's App.
type serverEnd Session

// Ready implements sim.App.
func (se *serverEnd) Ready(now mono.Time, c *sim.Conn) (acted bool) {
	s := (*Session)(se)
	for c.Readable() > 0 && len(s.queue) > 0 {
		e := s.queue[0]
		n := c.Read(now, s.srv.buf[:min(chunk, e.Request-e.read)])
		if n <= 0 {
			break
		}
		acted = true
		if e.read += int64(n); e.read == e.Request {
			e.Arrived = now
			if s.finish(now) && s.Client != nil {
				s.srv.sim.After(0, s.Client.Wake)
			}
		}
	}
	if c.Closed() {
		return acted
	}
	if len(s.queue) > 0 {
		acted = s.answer(now, c) || acted
	}
	if c.EOF() && (len(s.queue) == 0 || s.over) && !s.left[1] {
		s.left[1] = true
		c.Close(now)
		return true
	}
	return acted
}

// answer writes what is left of the response to the first request.
func (s *Session) answer(now mono.Time, c *sim.Conn) (acted bool) {
	e := s.queue[0]
	if e.Begun == 0 || e.read < e.Request {
		return false
	}
	for e.answered < e.Response && c.WriteRoom() > 0 {
		n := c.Write(now, s.srv.buf[:min(chunk, e.Response-e.answered)])
		if n <= 0 {
			break
		}
		e.answered += int64(n)
		acted = true
	}
	return acted
}
