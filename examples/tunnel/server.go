package main

import (
	"context"
	"errors"
	"fmt"
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
	s := &server{allow: o.allow, slots: make(slots, o.flows), dial: dialKernel}
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
	dst, err := readRequest(c)
	if err != nil {
		reset(c)
		return err
	}
	if !s.allow.permits(dst) {
		refuse(c, statusDenied)
		return fmt.Errorf("destination %v is not allowed", dst)
	}
	target, err := s.dialInTime(ctx, dst)
	if err != nil {
		refuse(c, statusUnreachable)
		return err
	}
	c.SetDeadline(time.Now().Add(patience))
	if _, err := c.Write([]byte{byte(statusOK)}); err != nil {
		reset(c)
		reset(target)
		return err
	}
	c.SetDeadline(time.Time{})
	return relayUntil(ctx, c, target)
}

func (s *server) dialInTime(ctx context.Context, dst netip.AddrPort) (half, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return s.dial(ctx, dst)
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
