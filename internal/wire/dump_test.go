package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/wire"
)

func TestSegmentString(t *testing.T) {
	seg := parse(t, unhex("020405b4 1e0c0101 8071864f7aa13d76"))
	seg.Src, seg.Dst = addrPort("10.0.0.1:1000"), addrPort("10.0.0.2:80")
	seg.Flags = wire.SYN | wire.ACK
	require.Equal(t, "10.0.0.1:1000 > 10.0.0.2:80 [S.] seq 1 ack 2 win 65535 len 0 "+
		"<mss 1460, mptcp capable v1 [H] key 8071864f7aa13d76>", seg.String())

	require.Equal(t, "10.0.0.1:1000 > 10.0.0.2:80 [FP.W] seq 4294967288 ack 7 win 512 len 25 in 10 ect0 "+
		"<ts 1/2, mptcp dss dsn4 100 ssn 1 len 25>", super().String())

	bad := parse(t, unhex("1e045102"))
	bad.Src, bad.Dst = addrPort("[2001:db8::1]:1000"), addrPort("[2001:db8::2]:80")
	bad.Flags, bad.Urgent, bad.ECN = wire.URG, 3, wire.CE
	require.Equal(t, "[2001:db8::1]:1000 > [2001:db8::2]:80 [U] seq 1 win 65535 urg 3 len 0 ce <bad mptcp prio>", bad.String())
}

func TestFlagsString(t *testing.T) {
	require.Equal(t, "none", wire.Flags(0).String())
	require.Equal(t, "FSRP.UEW", wire.Flags(0xff).String())
}

func TestOptionSetString(t *testing.T) {
	require.Equal(t, "", wire.OptionSet(0).String())
	require.Equal(t, "mss, mptcp dss", (wire.OptMSS | wire.OptDSS).String())
}
