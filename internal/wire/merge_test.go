package wire_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/wire"
)

func addrPort(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

// packets cuts a super-segment.
func packets(whole *wire.Segment) (all []*wire.Segment) {
	cut := wire.Split(whole)
	for {
		p := new(wire.Segment)
		if !cut.Next(p) {
			return all
		}
		all = append(all, p)
	}
}

func TestMergeReversesSplit(t *testing.T) {
	whole := super()
	ps := packets(whole)
	run := ps[0]
	for _, p := range ps[1:] {
		require.True(t, wire.Merge(run, p))
	}
	require.Equal(t, whole.Header, run.Header)
	require.Equal(t, whole.SegSize, run.SegSize)
	require.Equal(t, bytesOf(whole), bytesOf(run))
	require.Equal(t, []any{"one", "one", "two", "two"}, run.Blocks)

	again := packets(run)
	require.Len(t, again, len(ps))
	require.Equal(t, "klmnopqrst", bytesOf(again[1]))
}

func TestMergeJoinsSuperSegments(t *testing.T) {
	whole := super()
	whole.Payload, whole.Blocks = [][]byte{make([]byte, 45)}, nil
	ps := packets(whole)
	a, b := ps[0], ps[2]
	require.True(t, wire.Merge(a, ps[1]))
	require.True(t, wire.Merge(b, ps[3]))
	require.True(t, wire.Merge(a, b))
	require.True(t, wire.Merge(a, ps[4]))
	require.Equal(t, 45, a.PayloadLen())
	require.Equal(t, 10, a.SegSize)
}

type owner struct{}

func (owner) DecRef() {}

func TestMergeRefuses(t *testing.T) {
	for name, change := range map[string]func(a, b *wire.Segment){
		"another source":       func(_, b *wire.Segment) { b.Src = addrPort("10.0.0.9:1000") },
		"another destination":  func(_, b *wire.Segment) { b.Dst = addrPort("10.0.0.2:81") },
		"a gap":                func(_, b *wire.Segment) { b.Seq++ },
		"an overlap":           func(_, b *wire.Segment) { b.Seq-- },
		"another ack":          func(_, b *wire.Segment) { b.Ack++ },
		"another window":       func(_, b *wire.Segment) { b.Wnd++ },
		"a congestion mark":    func(_, b *wire.Segment) { b.ECN = wire.CE },
		"data after PSH":       func(a, _ *wire.Segment) { a.Flags |= wire.PSH },
		"data after FIN":       func(a, _ *wire.Segment) { a.Flags |= wire.FIN },
		"a SYN":                func(a, b *wire.Segment) { a.Flags |= wire.SYN; b.Flags |= wire.SYN },
		"a RST":                func(_, b *wire.Segment) { b.Flags |= wire.RST },
		"urgent data":          func(_, b *wire.Segment) { b.Flags |= wire.URG },
		"ECE on one":           func(a, _ *wire.Segment) { a.Flags |= wire.ECE },
		"CWR on the second":    func(_, b *wire.Segment) { b.Flags |= wire.CWR },
		"other timestamps":     func(_, b *wire.Segment) { b.TSVal++ },
		"no timestamps":        func(_, b *wire.Segment) { b.Has &^= wire.OptTimestamps },
		"another mapping":      func(_, b *wire.Segment) { b.DSS.DSN += 10; b.DSS.SSN += 10 },
		"another DATA_ACK":     func(_, b *wire.Segment) { b.DSS.Flags |= wire.DSSAck },
		"an added signal":      func(_, b *wire.Segment) { b.Has |= wire.OptMPPrio },
		"a malformed option":   func(a, b *wire.Segment) { a.Bad, b.Bad = wire.OptMPPrio, wire.OptMPPrio },
		"no payload":           func(_, b *wire.Segment) { b.Payload, b.Blocks = nil, nil },
		"nothing to add to":    func(a, b *wire.Segment) { a.Payload, a.Blocks = nil, nil; b.Seq = a.Seq },
		"growing packets":      func(_, b *wire.Segment) { b.Payload = [][]byte{make([]byte, 11)} },
		"owned memory":         func(_, b *wire.Segment) { b.Owner = owner{} },
		"blocks on one only":   func(_, b *wire.Segment) { b.Blocks = nil },
		"after a short packet": func(a, b *wire.Segment) { a.SegSize = 6; b.Payload[0] = b.Payload[0][:6] },
		"more than an IP packet": func(a, b *wire.Segment) {
			a.Payload = [][]byte{make([]byte, 64000)}
			b.Seq, b.Payload = a.Seq.Add(64000), [][]byte{make([]byte, 64000)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			whole := super()
			whole.Payload, whole.Blocks = [][]byte{make([]byte, 20)}, []any{1}
			whole.Flags &^= wire.PSH | wire.FIN
			ps := packets(whole)
			a, b := ps[0], ps[1]
			change(a, b)
			flags, n := a.Flags, a.PayloadLen()
			require.False(t, wire.Merge(a, b))
			require.Equal(t, flags, a.Flags)
			require.Equal(t, n, a.PayloadLen())
		})
	}
}
