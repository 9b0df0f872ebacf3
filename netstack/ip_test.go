package netstack

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// Addresses of the host and of its peer on the first link.
const peer4, host4, peer6, host6 = "10.0.0.2", "10.0.0.1", "fd00:0::2", "fd00:0::1"

// outcome is what becomes of a packet.
type outcome struct {
	answers [][]byte
	valid   uint64 // segments that TCP has seen
}

// outcomeOf sends a packet to a host with addresses on two links, and no listener,
// over the first. Watched, gVisor's IP layer has it.
func outcomeOf(t *testing.T, packet []byte, watched, down bool) outcome {
	t.Helper()
	a, b := NewPipe(PipeConfig{Checksum: true})
	other, _ := NewPipe(PipeConfig{})
	h, err := New(Config{})
	require.NoError(t, err)
	defer h.Close()
	require.NoError(t, h.AddLink(LinkConfig{Name: "a", Link: a, Addrs: addrs(0, 1), Default: true}))
	require.NoError(t, h.AddLink(LinkConfig{Name: "b", Link: other, Addrs: addrs(1, 1)}))
	if watched {
		h.GVisor()
	}
	if down {
		require.NoError(t, h.SetLinkUp("a", false))
	}
	got := attachSink(b)
	transmit(t, b, bytes.Clone(packet))
	if watched && !down && ipLength(packet) > 0 {
		require.NotZero(t, h.gvisor.Stats().IP.PacketsReceived.Value())
	}
	is := outcome{valid: h.to.stats.ValidSegmentsReceived.Value()}
	for _, a := range got.arrivals() {
		is.answers = append(is.answers, a.packet)
	}
	return is
}

// whole is a SYN with a checksum, as it lies on a link.
func whole(src, dst string) []byte {
	pkt := superSegment(netip.MustParseAddr(src), netip.MustParseAddr(dst), nil, 0, header.TCPFlagSyn)
	defer pkt.DecRef()
	buf := pkt.ToBuffer()
	defer buf.Release()
	return summed(buf.Flatten())
}

// summed gives a packet the checksum of its TCP header.
func summed(b []byte) []byte {
	n := ipLength(b)
	setChecksum(b[:n], b[n:], nil)
	return b
}

// relabelled changes an IPv4 header and gives it the checksum that belongs to it.
func relabelled(b []byte, change func(header.IPv4)) []byte {
	change(header.IPv4(b))
	header.IPv4(b).SetChecksum(0)
	header.IPv4(b).SetChecksum(^header.IPv4(b).CalculateChecksum())
	return b
}

// What a host does with a TCP packet does not depend on which IP layer has it, ours
// or gVisor's, and what it answers is the same to the last bit. Guards: each
// condition of take, plain and admit.
func TestIPLayersAgree(t *testing.T) {
	for name, tt := range map[string]struct {
		packet   []byte
		answered bool
	}{
		"IPv4":                    {whole(peer4, host4), true},
		"IPv4 from afar":          {whole("192.0.2.1", host4), true},
		"IPv4 with CE":            {relabelled(whole(peer4, host4), func(ip header.IPv4) { ip.SetTOS(3, 0) }), true},
		"IPv4 with TTL 1":         {relabelled(whole(peer4, host4), func(ip header.IPv4) { ip.SetTTL(1) }), true},
		"IPv4 with options":       {relabelled(withOptions(whole(peer4, host4)), func(header.IPv4) {}), true},
		"IPv4 with padding":       {append(whole(peer4, host4), 0, 0, 0, 0), true},
		"IPv4 cut short":          {whole(peer4, host4)[:50], false},
		"first fragment":          {relabelled(whole(peer4, host4), func(ip header.IPv4) { ip.SetFlagsFragmentOffset(header.IPv4FlagMoreFragments, 0) }), false},
		"last fragment":           {relabelled(whole(peer4, host4), func(ip header.IPv4) { ip.SetFlagsFragmentOffset(0, 8) }), false},
		"wrong header checksum":   {flipped(whole(peer4, host4), 10), false},
		"wrong TCP checksum":      {flipped(whole(peer4, host4), 36), false},
		"to a neighbour":          {whole(peer4, "10.0.0.9"), false},
		"to the other link":       {whole(peer4, "10.0.1.1"), false},
		"to the network":          {whole(peer4, "10.0.0.255"), false},
		"to all":                  {whole(peer4, "255.255.255.255"), false},
		"to a group":              {whole(peer4, "224.0.0.1"), false},
		"from itself":             {whole(host4, host4), false},
		"from its other link":     {whole("10.0.1.1", host4), false},
		"from the network":        {whole("10.0.0.255", host4), false},
		"from all":                {whole("255.255.255.255", host4), false},
		"from a group":            {whole("224.0.0.1", host4), false},
		"from nobody":             {whole("0.0.0.0", host4), false},
		"from a loopback":         {whole("127.0.0.1", host4), false},
		"IPv6":                    {whole(peer6, host6), true},
		"IPv6 from afar":          {whole("2001:db8::1", host6), true},
		"IPv6 with an extension":  {withExtension(whole(peer6, host6)), true},
		"IPv6, wrong checksum":    {flipped(whole(peer6, host6), 56), false},
		"IPv6 to a neighbour":     {whole(peer6, "fd00:0::9"), false},
		"IPv6 to the other link":  {whole(peer6, "fd00:1::1"), false},
		"IPv6 to a group":         {whole(peer6, "ff02::1"), false},
		"IPv6 from itself":        {whole(host6, host6), false},
		"IPv6 from a group":       {whole("ff02::1", host6), false},
		"IPv6 from nobody":        {whole("::", host6), false},
		"IPv6 from a loopback":    {whole("::1", host6), false},
		"IPv6 from a mapped IPv4": {fromMapped(whole(peer6, host6)), false},
	} {
		t.Run(name, func(t *testing.T) {
			theirs, ours := outcomeOf(t, tt.packet, true, false), outcomeOf(t, tt.packet, false, false)
			require.Equal(t, tt.answered, len(ours.answers) == 1)
			require.Equal(t, theirs, ours)
			require.Zero(t, outcomeOf(t, tt.packet, false, true), "a link that is down")
		})
	}
}

// Whatever bytes are changed. Checksums are made good for one half of the packets,
// lest little come as far as TCP.
func TestIPLayersAgreeOnOddities(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, base := range [][]byte{whole(peer4, host4), whole(peer6, host6), withOptions(whole(peer4, host4)), withExtension(whole(peer6, host6))} {
		for i := range 200 {
			b := bytes.Clone(base)
			for range 1 + rng.IntN(3) {
				b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
			}
			if rng.IntN(8) == 0 {
				b = b[:1+rng.IntN(len(b))]
			}
			if ip, tcp := headersIn(b); i%2 == 0 && tcp != nil {
				setLength(ip, len(b)-len(ip))
				setChecksum(ip, tcp, [][]byte{b[len(ip)+len(tcp):]})
			}
			theirs, ours := outcomeOf(t, b, true, false), outcomeOf(t, b, false, false)
			require.Len(t, ours.answers, len(theirs.answers), "%x", b)
			require.Equal(t, theirs.ofTCP(), ours.ofTCP(), "%x", b)
		}
	}
}

// ofTCP leaves out what is not answered by TCP: gVisor draws the identification of
// other packets at random.
func (o outcome) ofTCP() outcome {
	o.answers = slices.DeleteFunc(o.answers, func(b []byte) bool {
		_, tcp := headersIn(b)
		return tcp == nil || !plain(b[:ipLength(b)], len(b))
	})
	return o
}

// flipped changes a bit of byte i.
func flipped(b []byte, i int) []byte {
	b[i] ^= 1
	return b
}

// fromMapped changes the source of an IPv6 packet to ::ffff:10.0.0.2.
func fromMapped(b []byte) []byte {
	a := netip.MustParseAddr("::ffff:10.0.0.2").As16()
	copy(b[8:24], a[:])
	return summed(b)
}

// withOptions gives an IPv4 header options that do nothing.
func withOptions(b []byte) []byte {
	b = append(b[:20:20], append([]byte{1, 1, 1, 1}, b[20:]...)...)
	ip := header.IPv4(b)
	ip.SetHeaderLength(24)
	ip.SetTotalLength(uint16(len(b)))
	return b
}

// withExtension puts options that do nothing between an IPv6 header and TCP.
func withExtension(b []byte) []byte {
	b = append(b[:40:40], append([]byte{6, 0, 1, 4, 0, 0, 0, 0}, b[40:]...)...)
	ip := header.IPv6(b)
	ip.SetNextHeader(60)
	ip.SetPayloadLength(uint16(len(b) - 40))
	return b
}
