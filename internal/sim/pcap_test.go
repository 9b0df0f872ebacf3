package sim_test

import (
	"bytes"
	"io"
	"net/netip"
	"testing"
	"time"

	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"
	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/sim"
	"github.com/gomptcp/gomptcp/internal/wire"
)

func TestCaptureHasEveryPacketWithRightChecksums(t *testing.T) {
	for _, ipv6 := range []bool{false, true} {
		var file bytes.Buffer
		p := sim.TwoHosts(sim.PairConfig{Seed: 31, Paths: fastAndSlow(), IPv6: ipv6})
		c, err := p.StartCapture(&file)
		require.NoError(t, err)
		tr := p.Start(sim.TransferConfig{AB: 300_000, BA: 300_000, ConnA: sim.DefaultConn(), ConnB: sim.DefaultConn()})
		finish(t, p, tr, time.Minute)
		require.NoError(t, c.Close())

		r, err := pcapgo.NewNgReader(&file, pcapgo.NgReaderOptions{WantMixedLinkType: true})
		require.NoError(t, err)
		packets := make([]uint64, 2)
		var last time.Time
		for {
			b, info, err := r.ReadPacketData()
			if err == io.EOF {
				break
			}
			require.NoError(t, err)
			require.Equal(t, len(b), info.Length)
			require.False(t, info.Timestamp.Before(last))
			last = info.Timestamp
			packets[info.InterfaceIndex]++
			checkIP(t, b, ipv6)
		}
		require.Equal(t, 2, r.NInterfaces())
		for i, l := range p.Links {
			intf, err := r.Interface(i)
			require.NoError(t, err)
			require.Equal(t, l.Name, intf.Name)
			require.Equal(t, layers.LinkTypeRaw, intf.LinkType)
			require.Equal(t, l.AB.Stats().Packets+l.BA.Stats().Packets, packets[i])
		}
	}
}

// checkIP checks lengths, addresses and checksums of a packet.
func checkIP(t *testing.T, b []byte, ipv6 bool) {
	t.Helper()
	var src, dst netip.Addr
	var tcp []byte
	if ipv6 {
		require.Equal(t, byte(6), b[0]>>4)
		require.Equal(t, len(b)-40, int(b[4])<<8|int(b[5]))
		src, dst, tcp = netip.AddrFrom16([16]byte(b[8:24])), netip.AddrFrom16([16]byte(b[24:40])), b[40:]
	} else {
		require.Equal(t, byte(0x45), b[0])
		require.Equal(t, len(b), int(b[2])<<8|int(b[3]))
		require.Equal(t, uint16(0xffff), uint16(wire.Sum(b[:20], 0)))
		src, dst, tcp = netip.AddrFrom4([4]byte(b[12:16])), netip.AddrFrom4([4]byte(b[16:20])), b[20:]
	}
	n := wire.HeaderLen(tcp)
	require.Positive(t, n)
	require.Zero(t, wire.TCPChecksum(src, dst, tcp[:n], [][]byte{tcp[n:]}))
	var seg wire.Segment
	require.Equal(t, reason.DropNone, wire.Parse(tcp, &seg))
	require.Zero(t, seg.Bad)
}
