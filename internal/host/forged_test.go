package host_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/host"
	"github.com/gomptcp/gomptcp/internal/mpconn"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// victims returns a connection over two subflows, on which both sides have
// sent, and the last segment of the client on each subflow.
func victims(t *testing.T) (l *lab, c, s *host.Conn, last []*wire.Segment) {
	t.Helper()
	l = newLab(t, host.Config{})
	c, s = l.connect(config(t), l.listen(config(t), 0))
	l.exchange(c, s)
	_, err := l.client.Open(l.now, c, mpconn.OpenArgs{Local: netip.AddrPortFrom(clientAddr2, 0), Remote: service})
	require.NoError(t, err)
	l.run()
	l.exchange(c, s)
	for _, a := range []netip.Addr{clientAddr, clientAddr2} {
		var of *wire.Segment
		for _, seg := range l.client.sent {
			if seg.Src.Addr() == a {
				of = copyOf(seg)
			}
		}
		require.NotNil(t, of)
		last = append(last, of)
	}
	return l, c, s, last
}

// forgeries are what an attacker off the path may try, who knows the tuple at
// most.
var forgeries = []struct {
	name string
	make func(*wire.Segment)
}{
	{"rst", func(s *wire.Segment) { s.Flags = wire.RST }},
	{"rst with ack", func(s *wire.Segment) { s.Flags = wire.RST | wire.ACK }},
	{"syn", func(s *wire.Segment) { s.Flags = wire.SYN }},
	{"fin", func(s *wire.Segment) { s.Flags = wire.FIN | wire.ACK }},
	{"data", func(s *wire.Segment) { s.Payload = [][]byte{[]byte("evil")} }},
	{"mapped data", func(s *wire.Segment) {
		s.Payload = [][]byte{[]byte("evil")}
		s.Has |= wire.OptDSS
		s.DSS = wire.DSS{Flags: wire.DSSMap | wire.DSSDSN8, DSN: 1, SSN: 1, Len: 4}
	}},
	{"data_fin", func(s *wire.Segment) {
		s.Has |= wire.OptDSS
		s.DSS = wire.DSS{Flags: wire.DSSMap | wire.DSSDSN8 | wire.DSSFin, DSN: 1, Len: 1}
	}},
	{"infinite mapping", func(s *wire.Segment) {
		s.Payload = [][]byte{[]byte("evil")}
		s.Has |= wire.OptDSS
		s.DSS = wire.DSS{Flags: wire.DSSMap | wire.DSSDSN8, DSN: 1, SSN: 1}
	}},
	{"add_addr", forgeAddAddr},
	{"remove_addr", func(s *wire.Segment) {
		s.Has |= wire.OptRemoveAddr
		s.RemoveAddr = wire.RemoveAddr{N: 4, IDs: [37]uint8{0, 1, 2, 3}}
	}},
	{"mp_prio", func(s *wire.Segment) { s.Has |= wire.OptMPPrio; s.PrioBackup = true }},
	{"mp_fail", func(s *wire.Segment) { s.Has |= wire.OptMPFail; s.FailDSN = 1 }},
	{"mp_fastclose", forgeFastClose},
	{"mp_fastclose on rst", func(s *wire.Segment) { s.Flags = wire.RST; forgeFastClose(s) }},
	{"mp_tcprst", func(s *wire.Segment) { s.Flags = wire.RST; s.Has |= wire.OptMPTCPRst }},
}

func forgeAddAddr(s *wire.Segment) {
	s.Has |= wire.OptAddAddr
	s.AddAddr = wire.AddAddr{ID: 7, Addr: netip.MustParseAddr("10.6.6.6"), HMAC: [8]byte{1, 2, 3}}
}

func forgeFastClose(s *wire.Segment) {
	s.Has |= wire.OptFastClose
	s.FastClose = [8]byte{1, 2, 3}
}

// requireUnharmed checks that a connection is as it was.
func (l *lab) requireUnharmed(c, s *host.Conn) {
	l.t.Helper()
	l.advance(time.Second)
	for _, e := range []*host.Conn{c, s} {
		require.Equal(l.t, reason.CloseNone, e.Err())
		require.Equal(l.t, reason.FallbackNone, e.Fallback())
		require.False(l.t, e.EOF())
		require.Zero(l.t, e.Readable())
		subflows := e.AppendSubflows(nil)
		require.Len(l.t, subflows, 2)
		for i := range subflows {
			require.True(l.t, subflows[i].Up)
			require.False(l.t, subflows[i].PeerBackup)
		}
	}
	require.Zero(l.t, l.server.Counters().MIB[host.MIBAddAddr]+l.server.Counters().MIB[host.MIBRmAddr])
	l.exchange(c, s)
}

// TestForgedSegmentsHaveNoEffect has the attacker guess sequence numbers that
// are outside the window, as most of the 2^32 are.
func TestForgedSegmentsHaveNoEffect(t *testing.T) {
	for _, f := range forgeries {
		t.Run(f.name, func(t *testing.T) {
			l, c, s, last := victims(t)
			for _, to := range last {
				for _, off := range []int{-1 << 30, -1 << 24, 1 << 24, 1 << 30} {
					for _, ack := range []int{-1 << 30, 0, 1 << 30} {
						seg := &wire.Segment{Src: to.Src, Dst: to.Dst, Header: to.Header}
						seg.Seq, seg.Ack, seg.Flags = to.Seq.Add(off), to.Ack.Add(ack), wire.ACK
						f.make(seg)
						l.server.deliver(copyOf(seg))
						l.run()
					}
				}
			}
			l.requireUnharmed(c, s)
		})
	}
}

// TestForgedSegmentsInTheWindow has the attacker hit the window, but neither
// RCV.NXT exactly nor, where that is checked, what may be acknowledged; nor
// does it know the keys.
func TestForgedSegmentsInTheWindow(t *testing.T) {
	for _, f := range forgeries {
		switch f.name {
		case "rst", "rst with ack", "syn", "mp_fastclose on rst", "mp_tcprst":
			// RFC 5961, Sections 3.2 and 4.2: a challenge ACK is all.
		default:
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			l, c, s, last := victims(t)
			for _, to := range last {
				seg := &wire.Segment{Src: to.Src, Dst: to.Dst, Header: to.Header}
				seg.Seq = to.Seq.Add(to.PayloadLen() + 1000)
				f.make(seg)
				l.server.deliver(copyOf(seg))
				l.run()
			}
			l.requireUnharmed(c, s)
		})
	}
	for name, f := range map[string]func(*wire.Segment){"add_addr": forgeAddAddr, "mp_fastclose": forgeFastClose} {
		t.Run(name+" in order", func(t *testing.T) {
			l, c, s, last := victims(t)
			for _, to := range last {
				seg := &wire.Segment{Src: to.Src, Dst: to.Dst, Header: to.Header}
				seg.Seq, seg.Flags = to.Seq.Add(to.PayloadLen()), wire.ACK
				seg.Has, seg.TSVal, seg.TSEcr = wire.OptTimestamps, to.TSVal, to.TSEcr
				f(seg)
				l.server.deliver(copyOf(seg))
				l.run()
			}
			l.requireUnharmed(c, s)
			require.NotZero(t, s.Totals().Drops[reason.DropHMAC]+s.Totals().Drops[reason.DropKey], "the rejection is counted")
			s.Abort(l.now)
			l.run()
			drops := l.server.Counters().ConnDrops
			require.NotZero(t, drops[reason.DropHMAC]+drops[reason.DropKey])
		})
	}
	// RFC 5961, Section 5.2: data whose acknowledgment is out of range.
	t.Run("data", func(t *testing.T) {
		l, c, s, last := victims(t)
		for _, to := range last {
			for _, ack := range []int{-1 << 30, 1, 1 << 30} {
				seg := &wire.Segment{Src: to.Src, Dst: to.Dst, Header: to.Header, Payload: [][]byte{[]byte("evil")}}
				seg.Seq, seg.Ack, seg.Flags = to.Seq.Add(to.PayloadLen()), to.Ack.Add(ack), wire.ACK
				seg.Has, seg.TSVal, seg.TSEcr = wire.OptTimestamps, to.TSVal, to.TSEcr
				l.server.deliver(copyOf(seg))
				l.run()
			}
		}
		l.requireUnharmed(c, s)
	})
}
