package host_test

import (
	"net/netip"
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
