package host_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/host"
	"github.com/gomptcp/gomptcp/internal/mpconn"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// mib returns the counters that are not 0, by name.
func (n *node) mib() map[string]uint64 {
	all := make(map[string]uint64)
	c := n.Counters()
	for m := range host.NumMIBs {
		if c.MIB[m] != 0 {
			all[m.String()] = c.MIB[m]
		}
	}
	return all
}

func TestMIBNamesAreDistinct(t *testing.T) {
	seen := make(map[string]bool)
	for m := range host.NumMIBs {
		require.NotEmpty(t, m.String())
		require.False(t, seen[m.String()], m.String())
		seen[m.String()] = true
	}
}

func TestMIBOfAnOrdinaryConnection(t *testing.T) {
	l := newLab(t, host.Config{})
	c, s := l.connect(config(t), l.listen(config(t), 0))
	l.exchange(c, s)
	client := map[string]uint64{"MPCapableSYNTX": 1, "MPCapableSYNACKRX": 1, "MPCurrEstab": 1}
	server := map[string]uint64{"MPCapableSYNRX": 1, "MPCapableACKRX": 1, "MPCurrEstab": 1}
	require.Equal(t, client, l.client.mib())
	require.Equal(t, server, l.server.mib())

	id, err := l.client.Open(l.now, c, mpconn.OpenArgs{Local: netip.AddrPortFrom(clientAddr2, 0), Remote: service})
	require.NoError(t, err)
	l.run()
	client["MPJoinSynTx"], client["MPJoinSynAckRx"] = 1, 1
	server["MPJoinSynRx"], server["MPJoinAckRx"] = 1, 1

	require.True(t, c.SetBackup(l.now, id, true))
	another := netip.MustParseAddr("10.0.7.1")
	require.True(t, c.Announce(l.now, netip.AddrPortFrom(another, 0)))
	l.run()
	client["MPPrioTx"], client["AddAddrTx"], client["EchoAdd"] = 1, 1, 1
	server["MPPrioRx"], server["AddAddr"], server["EchoAddTx"] = 1, 1, 1
	require.Equal(t, client, l.client.mib())
	require.Equal(t, server, l.server.mib())

	require.True(t, c.Withdraw(l.now, another))
	l.advance(time.Second)
	require.Equal(t, uint64(1), l.client.mib()["RmAddrTx"])
	require.Equal(t, uint64(1), l.server.mib()["RmAddr"])

	s.Abort(l.now)
	l.run()
	require.NotZero(t, l.server.mib()["MPFastcloseTx"])
	require.NotZero(t, l.server.mib()["MPRstTx"])
	require.Equal(t, uint64(1), l.client.mib()["MPFastcloseRx"])
	require.Zero(t, l.client.mib()["MPCurrEstab"]+l.server.mib()["MPCurrEstab"])
}

func TestMIBOfFallbacks(t *testing.T) {
	plain := config(t)
	plain.Plain = true
	strip := func(flags wire.Flags) func(*wire.Segment) bool {
		return func(seg *wire.Segment) bool {
			if seg.Flags == flags {
				seg.Has &^= wire.OptMPTCP
			}
			return false
		}
	}
	for name, tt := range map[string]struct {
		box            func(*wire.Segment) bool
		server         host.ConnConfig
		client, atPeer string
	}{
		"plain server":  {nil, plain, "MPCapableFallbackSYNACK", ""},
		"third ack":     {strip(wire.ACK), config(t), "", "MPCapableFallbackACK"},
		"unanswered":    {dropsCapableSYN, config(t), "MPCapableSYNTXDrop", ""},
		"syn is bereft": {strip(wire.SYN), config(t), "MPCapableFallbackSYNACK", ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, host.Config{})
			l.listen(tt.server, 0)
			l.lost = tt.box
			l.dialOnce(config(t), service)
			for n, counter := range map[*node]string{l.client: tt.client, l.server: tt.atPeer} {
				if counter != "" {
					require.Equal(t, uint64(1), n.mib()[counter], "%v", n.mib())
				}
				require.Zero(t, n.mib()["MPCurrEstab"])
			}
		})
	}
}

func TestMIBOfRefusedJoins(t *testing.T) {
	l := newLab(t, host.Config{})
	c, s := l.connect(config(t), l.listen(config(t), 0))
	l.exchange(c, s)
	l.server.deliver(joinSYN(netip.AddrPortFrom(clientAddr2, 5), uint32(s.Token())+1))
	require.Equal(t, uint64(1), l.server.mib()["MPJoinNoTokenFound"])
	require.Equal(t, uint64(1), l.server.mib()["MPJoinSynRx"], "counted as it arrives, as Linux does")

	// A third ACK with another HMAC.
	l.lost = func(seg *wire.Segment) bool {
		if seg.Has&wire.OptMPJoin != 0 && seg.Join.Form == wire.JoinACK {
			seg.Join.HMAC[0]++
		}
		return false
	}
	open := func() {
		_, err := l.client.Open(l.now, c, mpconn.OpenArgs{Local: netip.AddrPortFrom(clientAddr2, 0), Remote: service})
		require.NoError(t, err)
		l.run()
	}
	open()
	require.Equal(t, uint64(1), l.server.mib()["MPJoinAckHMacFailure"])
	require.Equal(t, uint64(1), l.client.mib()["MPJoinSynAckRx"], "its SYN/ACK was good")
	require.Zero(t, l.server.mib()["MPJoinAckRx"])

	l.lost = func(seg *wire.Segment) bool {
		if seg.Has&wire.OptMPJoin != 0 && seg.Join.Form == wire.JoinSYNACK {
			seg.Join.HMAC[0]++
		}
		return false
	}
	open()
	require.Equal(t, uint64(1), l.client.mib()["MPJoinSynAckHMacFailure"])
	require.Equal(t, uint64(1), l.client.mib()["MPJoinSynAckRx"])
}

func TestTotalsSurviveTheirSubflows(t *testing.T) {
	l := newLab(t, host.Config{})
	c, s := l.connect(config(t), l.listen(config(t), 0))
	l.exchange(c, s)
	id, err := l.client.Open(l.now, c, mpconn.OpenArgs{Local: netip.AddrPortFrom(clientAddr2, 0), Remote: service})
	require.NoError(t, err)
	l.run()
	before := c.SubflowTotals()
	require.NotZero(t, c.AppendSubflows(nil)[id].TCP.SegsSent)
	require.True(t, c.CloseSubflow(l.now, id, 0))
	l.advance(time.Second)
	require.Equal(t, 1, c.Info().Subflows)
	after := c.SubflowTotals()
	require.GreaterOrEqual(t, after.SegmentsSent, before.SegmentsSent)
	require.GreaterOrEqual(t, after.SegmentsReceived, before.SegmentsReceived)
}

// What is particular about joins and announcements has counters of its own.
func TestMIBOfParticularJoins(t *testing.T) {
	l := newLab(t, host.Config{})
	c, s := l.connect(config(t), l.listen(config(t), 0))
	l.exchange(c, s)
	_, err := l.client.Open(l.now, c, mpconn.OpenArgs{
		Local: netip.AddrPortFrom(clientAddr2, 0), Remote: netip.AddrPortFrom(serverAddr, 8443), Backup: true,
	})
	require.NoError(t, err)
	l.run()
	for _, name := range []string{"MPJoinSynRx", "MPJoinSynBackupRx", "MPJoinPortSynRx", "MPJoinAckRx", "MPJoinPortAckRx"} {
		require.Equal(t, uint64(1), l.server.mib()[name], name)
	}
	require.Zero(t, l.client.mib()["MPJoinSynAckBackupRx"])
	require.Equal(t, uint64(1), l.client.mib()["MPJoinPortSynAckRx"])

	_, err = l.client.Open(l.now, c, mpconn.OpenArgs{Remote: netip.AddrPortFrom(unroutable, 1)})
	require.Error(t, err)
	require.Equal(t, uint64(1), l.client.mib()["MPJoinSynTxConnectErr"])
	taken := netip.AddrPortFrom(clientAddr2, c.AppendSubflows(nil)[1].Local.Port())
	_, err = l.client.Open(l.now, c, mpconn.OpenArgs{Local: taken, Remote: netip.AddrPortFrom(serverAddr, 8443)})
	require.Error(t, err)
	require.Equal(t, uint64(1), l.client.mib()["MPJoinSynTxBindErr"])

	require.True(t, s.Announce(l.now, netip.MustParseAddrPort("10.0.5.2:8080")))
	require.True(t, s.Announce(l.now, netip.AddrPortFrom(clientAddr, 0))) // which is the client's own
	l.run()
	require.Equal(t, uint64(1), l.client.mib()["PortAdd"])
	require.Equal(t, uint64(2), l.client.mib()["AddAddr"])
	require.Equal(t, uint64(1), l.client.mib()["AddAddrDrop"])
}

// A closed window is probed, and only as long as it is closed.
func TestMIBOfWindowProbes(t *testing.T) {
	l := newLab(t, host.Config{})
	cfg := config(t)
	cfg.ReadBuffer = 20_000
	c, s := l.connect(config(t), l.listen(cfg, 0))
	l.exchange(c, s)
	require.Equal(t, 30_000, c.Write(l.now, make([]byte, 30_000)))
	l.run()
	require.Zero(t, l.client.mib()["WinProbe"])
	l.advance(5 * time.Second) // after 200, 600, 1400 and 3000 ms
	probes := l.client.mib()["WinProbe"]
	require.InDelta(t, 4, probes, 1)
	require.Zero(t, l.server.mib()["WinProbe"])
	for read := 0; read < 30_000; {
		n := s.Read(l.now, make([]byte, 30_000))
		require.NotZero(t, n)
		read += n
		l.run()
	}
	l.advance(5 * time.Second)
	require.Equal(t, probes, l.client.mib()["WinProbe"])
}

// Options that stop passing once MPTCP has worked count apart from those that
// are missing on the first data.
func TestMIBOfLateFallbacks(t *testing.T) {
	for _, late := range []bool{false, true} {
		l := newLab(t, host.Config{})
		c, s := l.connect(config(t), l.listen(config(t), 0))
		if late {
			s.Write(l.now, []byte{1})
			l.run()
			require.Equal(t, 1, c.Read(l.now, make([]byte, 1)))
		}
		l.lost = func(seg *wire.Segment) bool {
			seg.Has &^= wire.OptMPTCP
			return false
		}
		for range 4 {
			c.Write(l.now, make([]byte, 100))
			l.advance(50 * time.Millisecond)
		}
		want := map[bool]string{false: "MPCapableDataFallback", true: "DssFallback"}
		require.EqualValues(t, 1, l.client.mib()[want[late]], "%v", l.client.mib())
		require.Zero(t, l.client.mib()[want[!late]])
	}
}

// A connection has 256 address ids.
func TestMIBOfAnnouncementsWithoutID(t *testing.T) {
	l := newLab(t, host.Config{})
	c, s := l.connect(config(t), l.listen(config(t), 0))
	l.exchange(c, s)
	told := 0
	for i := range 300 {
		if c.Announce(l.now, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 9, byte(i >> 8), byte(i)}), 0)) {
			told++
		}
	}
	l.run()
	require.Equal(t, 255, told)
	require.EqualValues(t, 300-told, l.client.mib()["AddAddrTxDrop"])
}

// Of announcements that come in one go, the answers to 8 wait; those beyond are
// not given, and counted.
func TestMIBOfEchoesNotSent(t *testing.T) {
	l := newLab(t, host.Config{})
	c, s := l.connect(config(t), l.listen(config(t), 0))
	l.exchange(c, s)
	require.True(t, c.Announce(l.now, netip.AddrPortFrom(netip.MustParseAddr("10.0.7.1"), 0)))
	told := copyOf(l.client.poll())
	require.NotZero(t, told.Has&wire.OptAddAddr)
	for range 8 {
		l.server.deliver(copyOf(told))
	}
	require.Zero(t, l.server.mib()["EchoAddTxDrop"])
	for range 3 {
		l.server.deliver(copyOf(told))
	}
	l.run()
	l.advance(time.Minute)
	require.EqualValues(t, 11, l.server.mib()["AddAddr"])
	require.EqualValues(t, 8, l.server.mib()["EchoAddTx"])
	require.EqualValues(t, 3, l.server.mib()["EchoAddTxDrop"])
}

// linuxMIBs are the names of MPTcpExt in /proc/net/netstat of Linux 6.18.
const linuxMIBs = `
		MPCapableSYNRX MPCapableSYNTX MPCapableSYNACKRX MPCapableACKRX MPCapableFallbackACK
		MPCapableFallbackSYNACK MPCapableSYNTXDrop MPCapableSYNTXDisabled MPCapableEndpAttempt
		MPFallbackTokenInit MPTCPRetrans MPJoinNoTokenFound MPJoinSynRx MPJoinSynBackupRx MPJoinSynAckRx
		MPJoinSynAckBackupRx MPJoinSynAckHMacFailure MPJoinAckRx MPJoinAckHMacFailure MPJoinRejected
		MPJoinSynTx MPJoinSynTxCreatSkErr MPJoinSynTxBindErr MPJoinSynTxConnectErr DSSNotMatching
		DSSCorruptionFallback DSSCorruptionReset InfiniteMapTx InfiniteMapRx DSSNoMatchTCP DataCsumErr
		OFOQueueTail OFOQueue OFOMerge NoDSSInWindow DuplicateData AddAddr AddAddrTx AddAddrTxDrop EchoAdd
		EchoAddTx EchoAddTxDrop PortAdd AddAddrDrop MPJoinPortSynRx MPJoinPortSynAckRx MPJoinPortAckRx
		MismatchPortSynRx MismatchPortAckRx RmAddr RmAddrDrop RmAddrTx RmAddrTxDrop RmSubflow MPPrioTx
		MPPrioRx MPFailTx MPFailRx MPFastcloseTx MPFastcloseRx MPRstTx MPRstRx SubflowStale SubflowRecover
		SndWndShared RcvWndShared RcvWndConflictUpdate RcvWndConflict MPCurrEstab Blackhole
		MPCapableDataFallback MD5SigFallback DssFallback SimultConnectFallback FallbackFailed WinProbe
`

// Every counter of Linux is here, but for those that mean nothing here.
func TestMIBsOfLinux(t *testing.T) {
	ours := make(map[string]bool)
	for m := range host.NumMIBs {
		ours[m.String()] = true
	}
	meaningless := []string{
		"MD5SigFallback",        // TCP MD5 signatures are not supported
		"MPJoinSynTxCreatSkErr", // a subflow is no socket that could fail to be made
		"MPCapableEndpAttempt",  // an announced port has no listener that could take another connection
		"MismatchPortSynRx",     // a join finds its connection by its token, at any port
		"MismatchPortAckRx",
		"SndWndShared", // a subflow's send window is never raised to the connection's
		"RcvWndShared", // and its receive window is the connection's from the start,
		"RcvWndConflictUpdate",
		"RcvWndConflict", // which changes under a lock
		"RmAddrDrop",     // a withdrawn address is acted on as it comes
		"RmAddrTxDrop",   // and there is room for every id
	}
	var missing []string
	for _, name := range strings.Fields(linuxMIBs) {
		if !ours[name] {
			missing = append(missing, name)
		}
	}
	require.ElementsMatch(t, meaningless, missing)
}

// A client that never spoke MPTCP is no fallback: it counts as accepted, and in
// no counter of MPTCP.
func TestMIBOfPlainClients(t *testing.T) {
	l := newLab(t, host.Config{})
	plain := config(t)
	plain.Plain = true
	_, s := l.connect(plain, l.listen(config(t), 0))
	require.False(t, s.IsMPTCP())
	require.Empty(t, l.server.mib())
	require.Empty(t, l.client.mib())
	require.EqualValues(t, 1, l.server.Counters().Accepted)
}
