package main

import (
	"context"
	"fmt"
	"log"
	"net/netip"
	"time"

	"github.com/gomptcp/gomptcp/mptcp"
	"github.com/gomptcp/gomptcp/netstack"
)

// client takes flows of applications to the server.
type client struct {
	server netip.AddrPort
	dialer mptcp.Dialer
	slots  slots
}

// runClient carries what enters the device until ctx ends.
func runClient(ctx context.Context, o *clientOptions) error {
	host, err := newHost(o.links)
	if err != nil {
		return err
	}
	defer host.Close()
	device, err := netstack.OpenTUN(netstack.TUNConfig{Name: o.device, NoOffload: true})
	if err != nil {
		return err
	}
	c := newClient(host, o.server, o.flows)
	in, err := intercept(device, o.flows, func(f *flow) { c.handle(ctx, f) }, func(f *packetFlow) bool { return c.handlePackets(ctx, f) })
	if err != nil {
		device.Close()
		return err
	}
	if err := route(device.Name(), o.address, o.routes); err != nil {
		in.close()
		return err
	}
	log.Printf("carrying what enters %s to %v", device.Name(), o.server)
	<-ctx.Done()
	c.slots.wait()
	in.close()
	return nil
}

func newClient(host *netstack.Host, server netip.AddrPort, flows int) *client {
	return &client{server: server, dialer: mptcp.Dialer{Stack: host.Stack}, slots: make(slots, flows)}
}

// handle carries one flow from its first packet to its end. The application's
// connection is accepted only once the server has dialled the destination.
func (c *client) handle(ctx context.Context, f *flow) {
	if ctx.Err() != nil || !c.slots.take() {
		f.refuse()
		return
	}
	defer c.slots.give()
	up, err := c.open(ctx, request{dst: f.dst})
	if err != nil {
		f.refuse()
		log.Printf("flow to %v: %v", f.dst, err)
		return
	}
	app, err := f.accept()
	if err != nil {
		reset(up)
		log.Printf("flow to %v: %v", f.dst, err)
		return
	}
	if err := relayUntil(ctx, app, up); err != nil {
		log.Printf("flow to %v: %v", f.dst, err)
	}
}

// handlePackets takes a flow of datagrams, whose first one has come, or does not.
func (c *client) handlePackets(ctx context.Context, f *packetFlow) bool {
	if ctx.Err() != nil || !c.slots.take() {
		return false
	}
	app, err := f.accept()
	if err != nil {
		c.slots.give()
		return false
	}
	go func() {
		defer c.slots.give()
		defer app.Close()
		up, err := c.open(ctx, request{dst: f.dst, datagrams: true})
		if err == nil {
			err = relayDatagrams(ctx, up, app)
		}
		if err != nil && ctx.Err() == nil {
			log.Printf("datagrams to %v: %v", f.dst, err)
		}
	}()
	return true
}

// open asks the server for a flow.
func (c *client) open(ctx context.Context, q request) (*mptcp.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	conn, err := c.dialer.DialMPTCP(ctx, c.server)
	if err != nil {
		return nil, err
	}
	conn.SetDeadline(time.Now().Add(2 * patience))
	_, err = conn.Write(appendRequest(nil, q))
	if err == nil {
		err = readStatus(conn)
	}
	if err != nil {
		reset(conn)
		return nil, fmt.Errorf("server %v: %w", c.server, err)
	}
	return conn, conn.SetDeadline(time.Time{})
}
