package host

import (
	"net/netip"

	"github.com/gomptcp/gomptcp/internal/mono"
)

// Range of ephemeral ports when the configuration gives none.
const (
	defaultEphemeralLo = 32768
	defaultEphemeralHi = 60999
)

// freshDraws is how many ports are tried for one that no subflow of the host
// uses at all, before one that is merely free for the tuple will do.
const freshDraws = 64

// ephemeral chooses a local port for a subflow from local to remote. It
// starts at a random place, which keeps ports hard to guess (RFC 6056,
// Section 3.3.1), and walks from there.
//
// RFC 8684, Section 3.9.1: "an implementation SHOULD reserve ephemeral ports
// across all local IP addresses", so that a join from another address may
// have the same port: ports that nothing uses come first.
func (h *Host) ephemeral(local netip.Addr, remote netip.AddrPort) (uint16, bool) {
	lo, n := int(h.cfg.EphemeralLo), int(h.cfg.EphemeralHi)-int(h.cfg.EphemeralLo)+1
	start := int(h.cfg.Rand() % uint64(n))
	for i := range min(n, freshDraws) {
		p := uint16(lo + (start+i)%n)
		if !h.tuples.portUsed(p) && h.portFree(local, p, remote) {
			return p, true
		}
	}
	for i := range n {
		p := uint16(lo + (start+i)%n)
		if h.portFree(local, p, remote) {
			return p, true
		}
	}
	return 0, false
}

// reusedPort chooses a local port whose tuple is in TIME-WAIT and may be left
// for a new incarnation.
func (h *Host) reusedPort(now mono.Time, local netip.Addr, remote netip.AddrPort) (uint16, bool) {
	lo, n := int(h.cfg.EphemeralLo), int(h.cfg.EphemeralHi)-int(h.cfg.EphemeralLo)+1
	start := int(h.cfg.Rand() % uint64(n))
	for i := range n {
		p := uint16(lo + (start+i)%n)
		w := h.timeWait.get(tuple{netip.AddrPortFrom(local, p), remote})
		if w != nil && h.listenPorts[p] == 0 && w.mayLeave(now, h.cfg.TimeWait) {
			return p, true
		}
	}
	return 0, false
}

// portFree reports whether a subflow from local with port p to remote would
// have a tuple of its own, and no listener's port.
func (h *Host) portFree(local netip.Addr, p uint16, remote netip.AddrPort) bool {
	return h.listenPorts[p] == 0 && !h.tupleTaken(tuple{netip.AddrPortFrom(local, p), remote})
}

// tupleTaken reports whether t is in use, TIME-WAIT included.
func (h *Host) tupleTaken(t tuple) bool {
	_, live := h.tuples.bindings[t]
	return live || h.timeWait.has(t)
}

// listenPort chooses a port for a listener.
func (h *Host) listenPort() (uint16, bool) {
	lo, n := int(h.cfg.EphemeralLo), int(h.cfg.EphemeralHi)-int(h.cfg.EphemeralLo)+1
	start := int(h.cfg.Rand() % uint64(n))
	for i := range n {
		p := uint16(lo + (start+i)%n)
		if h.listenPorts[p] == 0 && !h.tuples.portUsed(p) {
			return p, true
		}
	}
	return 0, false
}

// joinPort chooses the local port of a further subflow of c.
//
// RFC 8684, Section 3.9.1: "The local port for such SYNs SHOULD also be the
// same as the port for the first subflow", if the tuple is free. One that an
// earlier subflow of the connection had is not: the peer, or a middlebox, may
// not know yet that it is gone.
func (h *Host) joinPort(c *Conn, local netip.Addr, remote netip.AddrPort) (uint16, bool) {
	t := tuple{netip.AddrPortFrom(local, c.first.local.Port()), remote}
	if h.tupleTaken(t) {
		return h.ephemeral(local, remote)
	}
	h.subflows = c.AppendSubflows(h.subflows[:0])
	for i := range h.subflows {
		if s := &h.subflows[i]; s.Local == t.local && s.Remote == t.remote {
			return h.ephemeral(local, remote)
		}
	}
	return t.local.Port(), true
}
