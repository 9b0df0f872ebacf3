package netstack

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"time"
)

// LinkState is the state of a network interface of the operating system.
type LinkState struct {
	// Name and Index are the system's. An interface that was renamed is one
	// that is gone and one that is new.
	Name  string
	Index int

	// Up reports whether the interface is switched on and has a carrier. It is
	// false, without Addrs, once the interface is gone.
	Up bool

	// Addrs are its addresses, sorted.
	Addrs []netip.Prefix
}

// Usable reports whether the interface is up and has an address that means
// something beyond its own network.
func (s LinkState) Usable() bool {
	return s.Up && slices.ContainsFunc(s.Addrs, func(p netip.Prefix) bool { return p.Addr().IsGlobalUnicast() })
}

func (s LinkState) equal(o LinkState) bool {
	return s.Name == o.Name && s.Index == o.Index && s.Up == o.Up && slices.Equal(s.Addrs, o.Addrs)
}

// Watch tells f the state of every network interface of the operating system,
// then again of each whose state changed, until ctx ends, whose error it
// returns. f is called on the caller's goroutine. On Linux changes are heard
// of at once by netlink, elsewhere, and where netlink is not permitted, within
// a second; a change that is undone before it could be looked at is not
// reported.
//
// A Host whose links lead through the system's interfaces, TUNs that are
// routed to one uplink each for example, learns so of replugged cables and of
// radio cells that were left:
//
//	go netstack.Watch(ctx, func(s netstack.LinkState) {
//		if link, ok := linkOf[s.Name]; ok {
//			host.SetLinkUp(link, s.Usable())
//		}
//	})
//
// Connections give up what used the link at once, and open new subflows when
// it is back. A program that makes its links only when an interface appears
// calls AddLink and RemoveLink there instead.
//
// It is the network namespace of the calling thread that is watched.
func Watch(ctx context.Context, f func(LinkState)) error {
	// Subscribed before the first look, no change is missed.
	news := subscribe()
	defer news.close()
	var known []LinkState
	for {
		now, err := interfaces()
		if err != nil {
			return err
		}
		for _, s := range changes(known, now) {
			f(s)
		}
		known = now
		if err := news.wait(ctx); err != nil {
			return err
		}
	}
}

// lookout waits until the interfaces are to be looked at.
type lookout interface {
	// wait returns the error of ctx once that is done.
	wait(ctx context.Context) error
	close()
}

// pollInterval is the time between two looks where the system sends no news.
const pollInterval = time.Second

// poller looks every pollInterval.
type poller struct{}

func (poller) wait(ctx context.Context) error {
	t := time.NewTimer(pollInterval)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

func (poller) close() {}

// interfaces returns the state of all interfaces in order of their numbers.
func interfaces() ([]LinkState, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	const working = net.FlagUp | net.FlagRunning
	var states []LinkState
	for i := range all {
		s := LinkState{Name: all[i].Name, Index: all[i].Index, Up: all[i].Flags&working == working}
		addrs, err := all[i].Addrs()
		if err != nil {
			continue // it went away meanwhile
		}
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil {
				s.Addrs = append(s.Addrs, netip.PrefixFrom(p.Addr().WithZone(""), p.Bits()))
			}
		}
		slices.SortFunc(s.Addrs, netip.Prefix.Compare)
		states = append(states, s)
	}
	slices.SortFunc(states, func(a, b LinkState) int { return a.Index - b.Index })
	return states, nil
}

// changes returns what is to be reported: first interfaces that are gone, then
// those that are new or changed.
func changes(old, now []LinkState) []LinkState {
	var out []LinkState
	named := func(all []LinkState, name string) int {
		return slices.IndexFunc(all, func(s LinkState) bool { return s.Name == name })
	}
	for _, s := range old {
		if named(now, s.Name) < 0 {
			out = append(out, LinkState{Name: s.Name, Index: s.Index})
		}
	}
	for _, s := range now {
		if i := named(old, s.Name); i < 0 || !s.equal(old[i]) {
			out = append(out, s)
		}
	}
	return out
}
