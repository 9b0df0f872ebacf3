package netstack

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/arp"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/icmp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"

	"github.com/gomptcp/gomptcp/mptcp"
)

// Config says how to build a Host. The zero Config is usable.
type Config struct {
	// MPTCP is the default of connections and listeners; nil = the defaults of
	// mptcp.Config.
	MPTCP *mptcp.Config
}

// LinkConfig describes a link of a Host.
type LinkConfig struct {
	// Name tells the link from others of the host, in SubflowInfo.Link for
	// one.
	Name string

	// Link is the link itself. Once it was added it belongs to the host, which
	// closes it in RemoveLink and Close.
	Link stack.LinkEndpoint

	// Addrs are the host's addresses on the link, each with the length of its
	// network's prefix.
	Addrs []netip.Prefix

	// Routes are the destinations to be reached over the link besides the
	// networks of Addrs. Packets leave over the link of their source address:
	// the same destination on several links makes as many paths.
	Routes []netip.Prefix

	// Default adds everything to Routes, of each IP version that Addrs has.
	Default bool

	// Gateways are the next hops of Routes, at most one of each IP version.
	// Links without link-layer addresses, such as pipes and TUNs, need none.
	Gateways []netip.Addr

	// Backup asks to use the link's addresses only when no other is left.
	Backup bool
}

// Host is a gVisor stack with an mptcp.Stack in it: a computer of its own,
// with addresses, links and routes, whose connections are opened by Dial and
// Listen. Its methods are safe for concurrent use.
type Host struct {
	*mptcp.Stack

	gvisor *stack.Stack
	to     *adapter
	port   port

	// admin serializes changes, the mptcp.Stack's knowledge of them included.
	admin  sync.Mutex
	links  []*hostLink // guarded by admin; in the order of AddLink
	lastID tcpip.NICID // guarded by admin
	closed bool        // guarded by admin
}

// hostLink is a link of a Host. Its fields are guarded by Host.admin.
type hostLink struct {
	LinkConfig
	nic tcpip.NICID
	up  bool
}

// New returns a host without links. It answers pings, and has UDP for whoever
// asks GVisor.
func New(cfg Config) (*Host, error) {
	if cfg.MPTCP != nil {
		if err := cfg.MPTCP.Validate(); err != nil {
			return nil, err
		}
	}
	to := &adapter{routes: make(map[path]*stack.Route)}
	to.locals.Store(new([]mptcp.LocalAddr))
	to.own.Store(new(map[tcpip.NICID]ownLink))
	to.homes.Store(new(homes))
	to.gvisor = stack.New(stack.Options{
		NetworkProtocols: []stack.NetworkProtocolFactory{
			// Without options IPv6 does no duplicate address detection: addresses
			// are usable at once.
			ipv4.NewProtocol, ipv6.NewProtocol, arp.NewProtocol,
		},
		TransportProtocols: []stack.TransportProtocolFactory{
			func(*stack.Stack) stack.TransportProtocol { return &protocol{} },
			udp.NewProtocol, icmp.NewProtocol4, icmp.NewProtocol6,
		},
		// A host can dial itself, and refuses packets from outside that claim to
		// be its own.
		HandleLocal: true,
	})
	to.stats = to.gvisor.Stats().TCP
	to.core = mptcp.NewStack(to, cfg.MPTCP)
	to.gatherer.deliver = to.core.Deliver
	h := &Host{Stack: to.core, gvisor: to.gvisor, to: to, port: port{to}}
	if err := h.port.register(to.gvisor); err != nil {
		return nil, fmt.Errorf("netstack: tcp: %w", err)
	}
	return h, nil
}

// GVisor returns the gVisor stack below, for uses that this package does not
// cover: UDP sockets, counters, filters. Links, addresses and routes are to be
// changed through the Host only, which has to know of them.
//
// From the first call on all packets go through gVisor's IP layer, its filters
// and counters. Before, those of TCP on pipes and TUN devices do not, which saves
// a microsecond for each.
func (h *Host) GVisor() *stack.Stack {
	h.to.watched.Store(true)
	return h.gvisor
}

// Addrs returns the addresses that connections may now use.
func (h *Host) Addrs() []mptcp.LocalAddr { return slices.Clone(h.to.Locals()) }

// AddLink adds a link to the host and brings it up. Connections learn of its
// addresses and may use them at once. When AddLink fails the link is still the
// caller's to close.
func (h *Host) AddLink(cfg LinkConfig) error {
	h.admin.Lock()
	defer h.admin.Unlock()
	if err := h.check(&cfg); err != nil {
		return fmt.Errorf("link %q: %w", cfg.Name, err)
	}
	h.lastID++
	l := &hostLink{LinkConfig: cfg, nic: h.lastID, up: true}
	if err := h.plug(l); err != nil {
		_ = h.gvisor.RemoveNIC(l.nic)
		return fmt.Errorf("link %q: %w", cfg.Name, err)
	}
	h.links = append(h.links, l)
	h.knowOwn()
	h.announce(l, true)
	return nil
}

// check validates a link. Called with admin held.
func (h *Host) check(cfg *LinkConfig) error {
	switch {
	case h.closed:
		return errors.New("host is closed")
	case cfg.Name == "":
		return errors.New("no Name")
	case cfg.Link == nil:
		return errors.New("no Link")
	case h.find(cfg.Name) != nil:
		return errors.New("another link has this Name")
	case len(cfg.Addrs) == 0:
		return errors.New("no Addrs")
	}
	for _, p := range cfg.Addrs {
		switch a := p.Addr(); {
		case !p.IsValid() || a.IsUnspecified() || a.IsMulticast() || a.Is4In6() || a.Zone() != "":
			return fmt.Errorf("in Addrs: %v is no address of a host", p)
		case a.Is6() && cfg.Link.MTU() < header.IPv6MinimumMTU:
			return fmt.Errorf("in Addrs: %v: the link's MTU of %d is less than the %d of IPv6", p, cfg.Link.MTU(), header.IPv6MinimumMTU)
		}
		for _, l := range h.links {
			if slices.ContainsFunc(l.Addrs, func(q netip.Prefix) bool { return q.Addr() == p.Addr() }) {
				return fmt.Errorf("in Addrs: %v is in use on link %q", p.Addr(), l.Name)
			}
		}
	}
	for _, p := range cfg.Routes {
		if !p.IsValid() || p.Addr().Is4In6() {
			return fmt.Errorf("in Routes: %v is no prefix", p)
		}
	}
	for i, g := range cfg.Gateways {
		if !g.IsValid() || g.Is4In6() {
			return fmt.Errorf("in Gateways: %v is no address", g)
		}
		if slices.ContainsFunc(cfg.Gateways[:i], func(o netip.Addr) bool { return o.Is4() == g.Is4() }) {
			return fmt.Errorf("in Gateways: %v is the second of its IP version", g)
		}
	}
	return nil
}

// plug makes a link known to gVisor. Called with admin held.
func (h *Host) plug(l *hostLink) error {
	if err := h.gvisor.CreateNICWithOptions(l.nic, l.Link, stack.NICOptions{Name: l.Name}); err != nil {
		return toError(err)
	}
	for _, p := range l.Addrs {
		addr := tcpip.ProtocolAddress{
			Protocol:          protocolOf(p.Addr()),
			AddressWithPrefix: tcpip.AddressWithPrefix{Address: toAddress(p.Addr()), PrefixLen: p.Bits()},
		}
		if err := h.gvisor.AddProtocolAddress(l.nic, addr, stack.AddressProperties{}); err != nil {
			return fmt.Errorf("address %v: %w", p, toError(err))
		}
		h.gvisor.AddRoute(tcpip.Route{Destination: toSubnet(p), NIC: l.nic})
	}
	for _, p := range l.routes() {
		route := tcpip.Route{Destination: toSubnet(p), NIC: l.nic}
		for _, g := range l.Gateways {
			if g.Is4() == p.Addr().Is4() {
				route.Gateway = toAddress(g)
			}
		}
		h.gvisor.AddRoute(route)
	}
	return nil
}

// The prefixes of everything.
var (
	allIPv4 = netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	allIPv6 = netip.PrefixFrom(netip.IPv6Unspecified(), 0)
)

// routes returns the destinations of a link, those of Default included.
func (l *hostLink) routes() []netip.Prefix {
	all := slices.Clone(l.Routes)
	if !l.Default {
		return all
	}
	if slices.ContainsFunc(l.Addrs, func(p netip.Prefix) bool { return p.Addr().Is4() }) {
		all = append(all, allIPv4)
	}
	if slices.ContainsFunc(l.Addrs, func(p netip.Prefix) bool { return p.Addr().Is6() }) {
		all = append(all, allIPv6)
	}
	return all
}

// SetLinkUp takes a link down or brings it up, as when a host notices that a
// cable is pulled: connections learn at once which addresses are gone and which
// are back. The link stays attached.
func (h *Host) SetLinkUp(name string, up bool) error {
	h.admin.Lock()
	defer h.admin.Unlock()
	l := h.find(name)
	if l == nil {
		return fmt.Errorf("link %q: no such link", name)
	}
	if l.up == up {
		return nil
	}
	change := h.gvisor.DisableNIC
	if up {
		change = h.gvisor.EnableNIC
	}
	if err := change(l.nic); err != nil {
		return fmt.Errorf("link %q: %w", name, toError(err))
	}
	l.up = up
	h.announce(l, up)
	return nil
}

// RemoveLink takes a link away for good and closes it.
func (h *Host) RemoveLink(name string) error {
	h.admin.Lock()
	defer h.admin.Unlock()
	l := h.find(name)
	if l == nil {
		return fmt.Errorf("link %q: no such link", name)
	}
	h.links = slices.DeleteFunc(h.links, func(o *hostLink) bool { return o == l })
	h.knowOwn()
	h.unplug(l)
	if l.up {
		h.announce(l, false)
	}
	return nil
}

// unplug detaches and closes a link. Called with admin held.
func (h *Host) unplug(l *hostLink) {
	_ = h.gvisor.RemoveNIC(l.nic) // fails for an unknown NIC only
	l.Link.Wait()
}

// knowOwn tells the adapter which links are of this package's making, and
// these whose they are. Called with admin held.
func (h *Host) knowOwn() {
	own := make(map[tcpip.NICID]ownLink)
	for _, l := range h.links {
		if o, ok := l.Link.(ownLink); ok {
			o.belong(&home{h.to, l.nic})
			own[l.nic] = o
		}
	}
	h.to.own.Store(&own)
}

// announce tells the adapter and the mptcp.Stack that the addresses of a link
// came or went. Called with admin held.
func (h *Host) announce(l *hostLink, up bool) {
	var locals []mptcp.LocalAddr
	at := make(homes)
	for _, o := range h.links {
		for _, p := range o.Addrs {
			if !o.up {
				continue
			}
			at.add(p, o.nic)
			if usable(p.Addr()) {
				locals = append(locals, mptcp.LocalAddr{Addr: p.Addr(), Link: o.Name, Backup: o.Backup})
			}
		}
	}
	h.to.locals.Store(&locals)
	h.to.homes.Store(&at)
	h.to.forgetRoutes()
	var changed []netip.Addr
	for _, p := range l.Addrs {
		if usable(p.Addr()) {
			changed = append(changed, p.Addr())
		}
	}
	if up {
		h.AddrUp(changed...)
	} else {
		h.AddrDown(changed...)
	}
}

// usable reports whether connections may use an address of the host. One of
// link-local scope means nothing to a peer on another link.
func usable(a netip.Addr) bool { return !a.IsLinkLocalUnicast() && !a.IsLoopback() }

// find is called with admin held.
func (h *Host) find(name string) *hostLink {
	for _, l := range h.links {
		if l.Name == name {
			return l
		}
	}
	return nil
}

// Close aborts all connections, closes all listeners and links, and waits for
// what these have running.
func (h *Host) Close() error {
	h.admin.Lock()
	defer h.admin.Unlock()
	if h.closed {
		return nil
	}
	h.closed = true
	err := h.Stack.Close()
	for _, l := range h.links {
		h.unplug(l)
	}
	h.links = nil
	h.to.locals.Store(new([]mptcp.LocalAddr))
	h.to.homes.Store(new(homes))
	h.to.forgetRoutes()
	h.port.unregister(h.gvisor)
	h.gvisor.Destroy()
	return err
}
