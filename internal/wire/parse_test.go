package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/seq"
	"github.com/gomptcp/gomptcp/internal/wire"
)

func TestParseReadsFixedHeader(t *testing.T) {
	b := unhex("03e8 0050 01020304 0a0b0c0d 5fb2 1234 abcd 5678")
	src, dst := wire.Ports(b)
	require.Equal(t, uint16(1000), src)
	require.Equal(t, uint16(80), dst)
	require.Equal(t, 20, wire.HeaderLen(b))
	var seg wire.Segment
	require.Equal(t, reason.DropNone, wire.Parse(b, &seg))
	// The reserved bits, all set here, are ignored.
	require.Equal(t, wire.Header{
		Seq: seq.SSN(0x01020304), Ack: seq.SSN(0x0a0b0c0d),
		Flags: wire.SYN | wire.ACK | wire.URG | wire.CWR, Wnd: 0x1234, Urgent: 0x5678,
	}, seg.Header)
}

func TestParseRefusesBadHeaders(t *testing.T) {
	ok := header(unhex("01010101"))
	withOffset := func(words byte) []byte {
		b := append([]byte(nil), ok...)
		b[12] = words << 4
		return b
	}
	for name, c := range map[string]struct {
		b    []byte
		want reason.Drop
	}{
		"empty":                 {nil, reason.DropShort},
		"19 bytes":              {ok[:19], reason.DropShort},
		"offset 0":              {withOffset(0), reason.DropOffset},
		"offset inside header":  {withOffset(4), reason.DropOffset},
		"offset past the end":   {withOffset(7), reason.DropOffset},
		"largest offset":        {withOffset(15), reason.DropOffset},
		"length byte missing":   {header(unhex("1e")), reason.DropOption},
		"length 0":              {header(unhex("1e000101")), reason.DropOption},
		"length 1":              {header(unhex("1e010101")), reason.DropOption},
		"length past the end":   {header(unhex("1e050101")), reason.DropOption},
		"unknown, length 0":     {header(unhex("fd000101")), reason.DropOption},
		"unknown, past the end": {header(unhex("fdff0101")), reason.DropOption},
		"good option then bad":  {header(unhex("020405b4 1e000000")), reason.DropOption},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, wire.Parse(c.b, new(wire.Segment)))
			if c.want != reason.DropOption {
				require.Equal(t, -1, wire.HeaderLen(c.b))
			}
		})
	}
	require.Equal(t, -1, wire.HeaderLen(nil))
	src, dst := wire.Ports([]byte{1, 2, 3})
	require.Zero(t, src)
	require.Zero(t, dst)
}

// What is skipped leaves the options around it alone.
func TestParseSkips(t *testing.T) {
	for name, options := range map[string]string{
		"unknown kind":              "fd06aabbccdd 0101 020405b4",
		"unknown kind, no data":     "fd02 0101 020405b4",
		"MPTCP without a subtype":   "1e02 0101 020405b4",
		"unassigned subtype":        "1e049000 020405b4",
		"private subtype":           "1e04f000 020405b4",
		"odd padding":               "01 020405b4 010101",
		"end of list":               "020405b4 00 1e0401",
		"end of list, then garbage": "020405b4 00 0000 ff",
	} {
		t.Run(name, func(t *testing.T) {
			seg := parse(t, unhex(options))
			require.Equal(t, wire.OptMSS, seg.Has)
			require.Zero(t, seg.Bad)
			require.Equal(t, uint16(1460), seg.MSS)
		})
	}
}

// Options whose length does not fit are reported and otherwise ignored.
func TestParseReportsBadLengths(t *testing.T) {
	for name, c := range map[string]struct {
		options string
		bad     wire.OptionSet
	}{
		"mss 3":                         {"020305", wire.OptMSS},
		"mss 2":                         {"0202", wire.OptMSS},
		"wscale 4":                      {"03040700", wire.OptWScale},
		"wscale 2":                      {"0302", wire.OptWScale},
		"sack-permitted 3":              {"040300", wire.OptSACKPermitted},
		"sack without blocks":           {"0502", wire.OptSACK},
		"sack with half a block":        {"0506 00000001", wire.OptSACK},
		"sack with one and a half":      {"050e 00000001 00000002 00000003", wire.OptSACK},
		"timestamps 6":                  {"0806 00000001", wire.OptTimestamps},
		"fast open, cookie too short":   {"2204 aabb", wire.OptFastOpen},
		"fast open, odd cookie":         {"2207 aabbccddee", wire.OptFastOpen},
		"fast open, cookie too long":    {"2214 000102030405060708090a0b0c0d0e0f1011", wire.OptFastOpen},
		"capable 3":                     {"1e0301", wire.OptMPCapable},
		"capable 5":                     {"1e05010100", wire.OptMPCapable},
		"capable of version 0, 3":       {"1e0300", wire.OptMPCapable},
		"capable 21":                    {"1e150101 0102030405060708 1112131415161718 00", wire.OptMPCapable},
		"join 4":                        {"1e041000", wire.OptMPJoin},
		"join 13":                       {"1e0d1000 ccad45ac a1a2a3a4 00", wire.OptMPJoin},
		"dss 3":                         {"1e0320", wire.OptDSS},
		"dss with neither ack nor map":  {"1e042000", wire.OptDSS},
		"dss with data_fin alone":       {"1e042010", wire.OptDSS},
		"dss ack 4, length 12":          {"1e0c2001 00000001 00000001", wire.OptDSS},
		"dss ack 8, length 8":           {"1e082003 00000001", wire.OptDSS},
		"dss ack with a checksum":       {"1e0a2001 00000001 82a1", wire.OptDSS},
		"dss map, length 15":            {"1e0f2004 00000001 00000001 0005 82", wire.OptDSS},
		"add_addr, no address":          {"1e043002", wire.OptAddAddr},
		"add_addr without hmac":         {"1e083002 0a000002", wire.OptAddAddr},
		"add_addr echo with hmac":       {"1e103102 0a000002 6e9998bdfbc2a132", wire.OptAddAddr},
		"add_addr 17":                   {"1e113002 0a000002 6e9998bdfbc2a132 00", wire.OptAddAddr},
		"remove_addr without ids":       {"1e0340", wire.OptRemoveAddr},
		"prio of version 0 with its id": {"1e045102", wire.OptMPPrio},
		"fail 11":                       {"1e0b6000 01020304050607", wire.OptMPFail},
		"fast close 4":                  {"1e047000", wire.OptFastClose},
		"tcprst 3":                      {"1e0380", wire.OptMPTCPRst},
		"tcprst 5":                      {"1e0580010000", wire.OptMPTCPRst},
	} {
		t.Run(name, func(t *testing.T) {
			// An unaligned neighbour shows that the skip went by length.
			b := unhex(c.options)
			b = append(b[:int(b[1])], unhex("fd02")...)
			seg := parse(t, b)
			require.Zero(t, seg.Has)
			require.Equal(t, c.bad, seg.Bad)
		})
	}
}

// Reserved bits and flags without their number are ignored.
func TestParseIgnoresReservedBits(t *testing.T) {
	for name, c := range map[string][2]string{
		"dss reserved bits":           {"1e082fe1 00000001", "mptcp dss ack4 1"},
		"dss m and F without M":       {"1e082019 00000001", "mptcp dss ack4 1"},
		"dss a without A":             {"1e0e2006 00000001 00000002 0003", "mptcp dss dsn4 1 ssn 2 len 3"},
		"join syn reserved bits":      {"1e0c1e02 ccad45ac a1a2a3a4", "mptcp join syn id 2 token ccad45ac nonce a1a2a3a4"},
		"join ack reserved bits":      {"1e181fff 53037f2899475529844115fd07e665d23d3554fb", "mptcp join ack hmac 53037f2899475529844115fd07e665d23d3554fb"},
		"add_addr unassigned flags":   {"1e103e02 0a000002 6e9998bdfbc2a132", "mptcp add-addr id 2 10.0.0.2 hmac 6e9998bdfbc2a132"},
		"remove_addr reserved bits":   {"1e044f02", "mptcp remove-addr 2"},
		"prio reserved bits":          {"1e035e", "mptcp prio"},
		"fail reserved bits":          {"1e0c6fff 0000000000000007", "mptcp fail dsn 7"},
		"fast close reserved bits":    {"1e0c7fff 1112131415161718", "mptcp fastclose key 1112131415161718"},
		"tcprst U, V, W":              {"1e048e01", "mptcp rst (mptcp-specific error)"},
		"tcprst reason not yet known": {"1e0481c8", "mptcp rst transient (reset(200))"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c[1], parse(t, unhex(c[0])).Options.String())
		})
	}
}

// Another version is reported so that the connection can decide.
func TestParseReportsOtherVersions(t *testing.T) {
	for options, want := range map[string]string{
		"1e040001": "mptcp capable v0 [H]",
		"1e140081 0102030405060708 1112131415161718": "mptcp capable v0 [AH] key 0102030405060708 peer 1112131415161718",
		"1e080201 aabbccdd":                          "mptcp capable v2 [H]",
	} {
		require.Equal(t, want, parse(t, unhex(options)).Options.String())
	}
}

func TestParseTakesFirstCopy(t *testing.T) {
	require.Equal(t, "mss 1460", parse(t, unhex("020405b4 02040218")).Options.String())
	require.Equal(t, "mptcp dss ack4 1", parse(t, unhex("1e082001 00000001 1e082001 00000002")).Options.String())
	// A bad first copy is not replaced either.
	seg := parse(t, unhex("1e045102 1e035101"))
	require.Zero(t, seg.Has)
	require.Equal(t, wire.OptMPPrio, seg.Bad)
}

// Parse into a used segment leaves nothing of its earlier options. Guard: the
// Reset at its beginning.
func TestParseForgetsEarlierOptions(t *testing.T) {
	seg := parse(t, unhex("020405b4 1e045102"))
	require.Equal(t, reason.DropNone, wire.Parse(header(nil), seg))
	require.Zero(t, seg.Has)
	require.Zero(t, seg.Bad)
}

// ParseNext says what Parse does, whatever the segment was made from before.
func TestParseNextIsParse(t *testing.T) {
	var all [][]byte
	for _, options := range []string{
		"", "01010101", "020405b4", "0101 080a 00000001 00000002", "0101 080a 00000001 00000003",
		"1e08 2000 0a0b0c0d", "1e08 2000 0a0b0c0e", "1e03 2000",
	} {
		for _, flags := range []byte{0x10, 0x18, 0x02} {
			b := header(unhex(options))
			b[7], b[13], b[15] = byte(len(all)), flags, byte(2*len(all))
			all = append(all, b)
		}
	}
	for _, before := range append(all, nil) {
		for _, b := range all {
			var seg, want wire.Segment
			if before != nil {
				require.Equal(t, reason.DropNone, wire.Parse(before, &seg))
			}
			require.Equal(t, reason.DropNone, wire.Parse(b, &want))
			require.Equal(t, reason.DropNone, wire.ParseNext(b, before, &seg))
			require.Equal(t, want.Header, seg.Header)
			require.True(t, want.Equal(&seg.Options), "%x after %x", b, before)
		}
		var seg wire.Segment
		require.Equal(t, reason.DropShort, wire.ParseNext(nil, before, &seg))
	}
}
