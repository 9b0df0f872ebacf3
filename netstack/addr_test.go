package netstack

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
)

func TestAddressesSurviveTheRoundTrip(t *testing.T) {
	for _, s := range []string{"0.0.0.0", "10.0.0.1", "255.255.255.255", "::", "::1", "fe80::1", "2001:db8::ffff:1"} {
		a := netip.MustParseAddr(s)
		require.Equal(t, a, fromAddress(toAddress(a)))
		require.Equal(t, s, toAddress(a).String())
	}
}

func TestAddressesThatGVisorDoesNotKnow(t *testing.T) {
	require.Equal(t, tcpip.Address{}, toAddress(netip.Addr{}))
	require.Equal(t, netip.Addr{}, fromAddress(tcpip.Address{}))
	require.Equal(t, "10.0.0.1", toAddress(netip.MustParseAddr("::ffff:10.0.0.1")).String())
	require.Equal(t, "fe80::1", toAddress(netip.MustParseAddr("fe80::1%eth0")).String())
}

func TestProtocolOfAnAddress(t *testing.T) {
	require.Equal(t, header.IPv4ProtocolNumber, protocolOf(netip.MustParseAddr("10.0.0.1")))
	require.Equal(t, header.IPv4ProtocolNumber, protocolOf(netip.MustParseAddr("::ffff:10.0.0.1")))
	require.Equal(t, header.IPv6ProtocolNumber, protocolOf(netip.MustParseAddr("2001:db8::1")))
}

func TestSubnetsIgnoreHostBits(t *testing.T) {
	s := toSubnet(netip.MustParsePrefix("10.1.2.3/16"))
	require.Equal(t, "10.1.0.0/16", s.String())
	all := toSubnet(netip.MustParsePrefix("::/0"))
	require.True(t, all.Contains(toAddress(netip.MustParseAddr("2001:db8::1"))))
	require.False(t, all.Contains(toAddress(netip.MustParseAddr("10.0.0.1"))))
}
