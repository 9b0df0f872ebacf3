package host

import (
	"net/netip"
	"time"

	"github.com/gomptcp/gomptcp/internal/key"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/mpconn"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/subflow"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// TCP Fast Open (RFC 7413). What a client remembers is of two kinds: the cookies
// of servers, by addresses, and on which ways a fast open has failed lately, by
// addresses and port.
const (
	maxFastOpens = 1024
	// fastOpenAfter is how long a fast open that the peer's RST ended counts as
	// pending still.
	fastOpenAfter = time.Minute
)

// addrPair is a local and a remote address.
//
// RFC 7413, Section 4.1.3: "the client should cache at most one (most recently
// received) cookie per client and server IP address pair."
type addrPair struct{ local, remote netip.Addr }

// servicePath is a way to a service.
//
// RFC 7413, Section 4.1.3.1: "Since TFO is enabled on a per-service-port basis,
// but cookies are independent of service ports, the client's cache should include
// remote port numbers, too."
type servicePath struct {
	local  netip.Addr
	remote netip.AddrPort
}

// fastOpenServer is what a server said to a client.
//
// RFC 7413, Section 4.1.3: "When caching cookies, we recommend that the client
// also cache the Maximum Segment Size (MSS) advertised by the server."
type fastOpenServer struct {
	cookie wire.FastOpen
	mss    int // bytes; 0 = not known
}

// offerFastOpen has c, which is about to be dialed, ask for a cookie, or hold its
// SYN back for data to go along with the cookie that is known. A dial that
// probes whether MPTCP passes must not fail for another reason.
func (h *Host) offerFastOpen(now mono.Time, c *Conn, cfg *mpconn.Config) {
	if !c.cfg.FastOpen || c.offered == dialProbes {
		return
	}
	if c.fastOpen = h.fastOpenFails.mode(now, c.service()); c.fastOpen == dialPlain {
		return
	}
	cfg.FastOpen.Send = true
	if s := h.fastOpens.get(c.addrs()); s != nil {
		cfg.FastOpen.Cookie, cfg.FastOpen.MSS = s.cookie, s.mss
		cfg.Hold = true
	}
}

func (c *Conn) addrs() addrPair { return addrPair{c.first.local.Addr(), c.first.remote.Addr()} }

func (c *Conn) service() servicePath { return servicePath{c.first.local.Addr(), c.first.remote} }

// learnFastOpen takes note of how a SYN with the fast open option was answered.
//
// RFC 7413, Section 4.1.3.1: "The client MUST cache negative responses from the
// server in order to avoid potential connection failures." Section 4.2.1: "We
// also RECOMMEND the client to record the set of servers that failed to respond
// to cookie requests and only attempt another cookie request after a certain
// period."
// Deviation: data that is not acknowledged while the SYN/ACK brings a new cookie
// is no such response: the old one was too old.
func (h *Host) learnFastOpen(now mono.Time, c *Conn) {
	o := c.FastOpened()
	if !c.active || !o.Asked {
		return
	}
	if o.Sent > 0 {
		h.count(fastOpenMIB[o.Acked == o.Sent])
	}
	known := h.fastOpens.get(c.addrs())
	fresh := o.Given.Len > 0 && (known == nil || known.cookie != o.Given)
	if fresh || known != nil && o.MSS > 0 {
		known = h.fastOpens.touch(c.addrs())
		if fresh {
			known.cookie = o.Given
		}
		known.mss = o.MSS
	}
	switch {
	case o.Acked > 0 || fresh:
		h.fastOpenFails.open(c.service())
	case o.Again && o.Given.Len == 0:
		// RFC 7413, Section 4.2.2: "If the SYN-ACK acknowledges only the initial
		// sequence and does not carry a Fast Open cookie option, presumably it is
		// triggered by a retransmitted (regular) SYN and the original SYN or the
		// corresponding SYN-ACK was lost."
		h.fastOpenFailed(now, c)
	case o.Sent > 0, !o.Cookie:
		h.fastOpenFails.closed(now, c.service(), c.fastOpen, false)
	}
}

// fastOpenMIB is the counter of data on a SYN that was acknowledged, or was not.
var fastOpenMIB = map[bool]MIB{true: MIBTCPFastOpenActive, false: MIBTCPFastOpenActiveFail}

// fastOpenFailed notes that something on c's way seems to drop what belongs to a
// fast open.
func (h *Host) fastOpenFailed(now mono.Time, c *Conn) {
	if h.fastOpenFails.closed(now, c.service(), c.fastOpen, false) {
		h.count(MIBTCPFastOpenBlackhole)
	}
}

// fastOpenEnded takes note of how a connection ended that c.FastOpened tells
// more about: at a peer that never answered, or not any more after it had taken
// data on the SYN, a fast open may be the reason. So it may be where the user had
// less patience than it takes to send a SYN without option; whoever never has
// more would not get through otherwise.
func (h *Host) fastOpenEnded(now mono.Time, c *Conn, why reason.Close) {
	o := c.FastOpened()
	silent := why == reason.CloseTimeout || why == reason.CloseUnreachable
	switch {
	case !c.active || !o.Asked:
	case !c.Connected() && why == reason.CloseLocalReset:
		h.fastOpenFails.closed(now, c.service(), c.fastOpen, false)
	case !silent:
	case !c.Connected():
		if o.Sent > 0 {
			h.count(MIBTCPFastOpenActiveFail)
		}
		h.fastOpenFailed(now, c)
	case o.Acked > 0 && c.Totals().BytesReceived == 0:
		h.fastOpenFailed(now, c)
	}
}

// fastOpenSlot returns the slot of time of cookies made at now.
func fastOpenSlot(now mono.Time) uint64 { return uint64(now.Duration() / key.FastOpenSlot) }

// pendingFastOpens are the connections of a listener that began with data on the
// SYN and whose third ACK has not come.
type pendingFastOpens struct {
	n     int
	reset []mono.Time // when those that were reset are forgotten, in order
}

// count returns how many there are.
//
// RFC 7413, Section 5.1: "Implementations may combine the two, e.g., by
// continuing to account for those connection requests that have just been reset
// against the listener's PendingFastOpenRequests until a timeout period has
// passed."
func (p *pendingFastOpens) count(now mono.Time) int {
	for len(p.reset) > 0 && p.reset[0].Reached(now) {
		p.reset = p.reset[1:]
	}
	if len(p.reset) == 0 {
		p.reset = nil
	}
	return p.n + len(p.reset)
}

// takeFastOpen decides what a connection of l does about the fast open option of
// the SYN that opens it.
//
// RFC 7413, Section 4.2: "When this flag is off, the server does not perform any
// TFO-related operations and MUST ignore all cookie options." Of
// PendingFastOpenRequests: "If this variable goes over a preset system limit, the
// server MUST disable TFO for all new connection requests until
// PendingFastOpenRequests drops below the system limit."
func (h *Host) takeFastOpen(now mono.Time, l *Listener, t tuple, syn *wire.Segment) (fo subflow.FastOpen) {
	if !l.profile.cfg.FastOpen || syn.Has&wire.OptFastOpen == 0 {
		return fo
	}
	if l.fastOpens.count(now) >= (l.backlog+1)/2 || h.fastOpening >= h.cfg.MaxHalfOpen {
		h.count(MIBTCPFastOpenListenOverflow)
		return fo
	}
	given := syn.FastOpen.Cookie[:syn.FastOpen.Len]
	slot := fastOpenSlot(now)
	ok, current := h.cfg.Secret.CheckFastOpen(slot, given, t.local.Addr(), t.remote.Addr())
	switch {
	case len(given) == 0:
		h.count(MIBTCPFastOpenCookieReqd)
	case ok:
		h.count(MIBTCPFastOpenPassive)
		fo.Take = true
	default:
		h.count(MIBTCPFastOpenPassiveFail)
	}
	if fo.Send = !current; fo.Send {
		c := h.cfg.Secret.FastOpenCookie(slot, t.local.Addr(), t.remote.Addr())
		fo.Cookie.Len = uint8(copy(fo.Cookie.Cookie[:], c[:]))
	}
	return fo
}

// beginFastOpen counts c, of which data on the SYN was taken, as pending.
func (h *Host) beginFastOpen(c *Conn, l *Listener) {
	c.pending = l
	l.fastOpens.n++
	h.fastOpening++
}

// endFastOpen counts c as pending no longer: its third ACK came, or it ended.
func (h *Host) endFastOpen(now mono.Time, c *Conn, why reason.Close) {
	l := c.pending
	if l == nil {
		return
	}
	c.pending = nil
	l.fastOpens.n--
	h.fastOpening--
	if why == reason.CloseRemoteReset {
		l.fastOpens.reset = append(l.fastOpens.reset, now.Add(fastOpenAfter))
	}
}
