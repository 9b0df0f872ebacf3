package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"strings"
)

// common are the settings of both sides.
type common struct {
	links []link
	flows int // most flows at once
}

func (c *common) register(f *flag.FlagSet) {
	f.Func("link", "a link, as `name,ours/bits,kernel's[,prefix...]`, with the prefixes reached over it (default: all); once for each link", func(s string) error {
		l, err := parseLink(s)
		c.links = append(c.links, l)
		return err
	})
	f.IntVar(&c.flows, "flows", 256, "most flows at once; more are refused")
}

func (c *common) check(f *flag.FlagSet) error {
	switch {
	case len(c.links) == 0:
		return errors.New("give at least one -link")
	case c.flows < 1:
		return errors.New("-flows must be at least 1")
	case f.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	return nil
}

// clientOptions are the settings of the client.
type clientOptions struct {
	common
	server  netip.AddrPort
	device  string         // where applications' packets come from
	address netip.Prefix   // the kernel's address on it
	routes  []netip.Prefix // destinations routed into it
}

func parseClient(args []string, errorOutput io.Writer) (*clientOptions, error) {
	o := &clientOptions{}
	f := flag.NewFlagSet("tunnel client", flag.ContinueOnError)
	f.SetOutput(errorOutput)
	o.register(f)
	f.TextVar(&o.server, "server", netip.AddrPort{}, "`address` of the server")
	f.Func("dev", "the device for applications, as `name,address/bits`", func(s string) error {
		name, address, ok := strings.Cut(s, ",")
		if !ok || name == "" {
			return errors.New("want name,address/bits")
		}
		var err error
		o.device = name
		o.address, err = netip.ParsePrefix(address)
		return err
	})
	f.Func("route", "route this `prefix` into the device; once for each", func(s string) error {
		p, err := netip.ParsePrefix(s)
		o.routes = append(o.routes, p)
		return err
	})
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	switch {
	case !o.server.IsValid():
		return nil, errors.New("give -server")
	case o.device == "":
		return nil, errors.New("give -dev")
	case len(o.routes) == 0:
		return nil, errors.New("give at least one -route")
	}
	for _, p := range o.routes {
		if p.Contains(o.server.Addr()) {
			return nil, fmt.Errorf("-route %v contains the server: its packets would enter the tunnel", p)
		}
	}
	return o, o.check(f)
}

// serverOptions are the settings of the server.
type serverOptions struct {
	common
	listen string
	allow  allowList
}

func parseServer(args []string, errorOutput io.Writer) (*serverOptions, error) {
	o := &serverOptions{}
	f := flag.NewFlagSet("tunnel server", flag.ContinueOnError)
	f.SetOutput(errorOutput)
	o.register(f)
	f.StringVar(&o.listen, "listen", ":7000", "`address` to listen on")
	f.Func("allow", "a destination that may be dialled, as `prefix:ports`: 198.18.0.0/16:80, [fd00::/8]:1-1023, 0.0.0.0/0:*; once for each", func(s string) error {
		r, err := parseRule(s)
		o.allow = append(o.allow, r)
		return err
	})
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if len(o.allow) == 0 {
		return nil, errors.New("give at least one -allow: without it nothing may be dialled")
	}
	return o, o.check(f)
}
