package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/netip"
	"sync"
	"time"
)

// patience bounds the set-up of a flow: to read its request, to dial its
// destination.
const patience = 10 * time.Second

// server takes flows from clients to their destinations.
type server struct {
	allow allowList
	slots slots
	dial  func(ctx context.Context, dst netip.AddrPort) (half, error)
	// dialUDP makes a socket for datagrams to and from dst.
	dialUDP func(ctx context.Context, dst netip.AddrPort) (net.Conn, error)
}

// runServer serves on the links until ctx ends.
func runServer(ctx context.Context, o *serverOptions) error {
	host, err := newHost(o.links)
	if err != nil {
		return err
	}
	defer host.Close()
	l, err := host.Listen("mptcp", o.listen)
	if err != nil {
		return err
	}
	log.Printf("serving on %v", l.Addr())
	s := &server{allow: o.allow, slots: make(slots, o.flows), dial: dialKernel, dialUDP: dialKernelUDP}
	return s.serve(ctx, l)
}

// dialKernel connects to a destination over the operating system's network.
func dialKernel(ctx context.Context, dst netip.AddrPort) (half, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", dst.String())
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

// dialKernelUDP is dialKernel for datagrams.
func dialKernelUDP(ctx context.Context, dst netip.AddrPort) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "udp", dst.String())
}

// serve accepts flows until ctx ends; then it resets those that go on and
// waits for their end.
func (s *server) serve(ctx context.Context, l net.Listener) error {
	var flows sync.WaitGroup
	defer flows.Wait()
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	for {
		c, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return nil
			}
			return err
		}
		if !s.slots.take() {
			flows.Go(func() { refuse(c.(half), statusBusy) })
			continue
		}
		flows.Go(func() {
			defer s.slots.give()
			if err := s.handle(ctx, c.(half)); err != nil {
				log.Printf("flow of %v: %v", c.RemoteAddr(), err)
			}
		})
	}
}

// refuse tells the client why its flow cannot be.
func refuse(c half, why status) {
	c.SetDeadline(time.Now().Add(patience))
	c.Write([]byte{byte(why)})
	c.Close()
}

// handle serves one flow from its request to its end.
func (s *server) handle(ctx context.Context, c half) error {
	c.SetDeadline(time.Now().Add(patience))
	q, err := readRequest(c)
	if err != nil {
		reset(c)
		return err
	}
	if !s.allow.permits(q.dst) {
		refuse(c, statusDenied)
		return fmt.Errorf("destination %v is not allowed", q.dst)
	}
	relay, target, err := s.connect(ctx, q, c)
	if err != nil {
		refuse(c, statusUnreachable)
		return err
	}
	c.SetDeadline(time.Now().Add(patience))
	if _, err := c.Write([]byte{byte(statusOK)}); err != nil {
		reset(c)
		target.Close()
		return err
	}
	c.SetDeadline(time.Time{})
	return relay()
}

// connect dials the destination of a request, in time, and returns what passes
// on what comes.
func (s *server) connect(ctx context.Context, q request, c half) (relay func() error, target io.Closer, err error) {
	short, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if q.datagrams {
		socket, err := s.dialUDP(short, q.dst)
		return func() error { return relayDatagrams(ctx, c.(carried), socket) }, socket, err
	}
	conn, err := s.dial(short, q.dst)
	return func() error { return relayUntil(ctx, c, conn) }, conn, err
}

// relayUntil relays, but no longer than ctx lives.
func relayUntil(ctx context.Context, a, b half) error {
	stop := context.AfterFunc(ctx, func() {
		reset(a)
		reset(b)
	})
	defer stop()
	return relay(a, b)
}
