package wire_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/wire"
)

// super returns a super-segment of 25 bytes in two blocks, to be cut into tens.
func super() *wire.Segment {
	one, two := []byte("...abcdefghijkl......."), []byte("mnopqrstuvwxy.....")
	return &wire.Segment{
		Src: addrPort("10.0.0.1:1000"), Dst: addrPort("10.0.0.2:80"),
		Header: wire.Header{Seq: 0xfffffff8, Ack: 7, Wnd: 512, Flags: wire.ACK | wire.PSH | wire.FIN | wire.CWR},
		Options: wire.Options{
			Has: wire.OptTimestamps | wire.OptDSS, TSVal: 1, TSEcr: 2,
			DSS: wire.DSS{Flags: wire.DSSMap, DSN: 100, SSN: 1, Len: 25},
		},
		Payload: [][]byte{one[3:15], nil, two[:13]},
		Blocks:  []any{"one", "none", "two"},
		ECN:     wire.ECT0,
		SegSize: 10,
	}
}

func bytesOf(seg *wire.Segment) string { return string(bytes.Join(seg.Payload, nil)) }

func TestSplitCutsSuperSegment(t *testing.T) {
	whole := super()
	cut := wire.Split(whole)
	var got []wire.Segment
	for {
		var p wire.Segment
		if !cut.Next(&p) {
			break
		}
		got = append(got, p)
	}
	require.Len(t, got, 3)
	for i, want := range []struct {
		payload string
		flags   wire.Flags
		seq     uint32
		blocks  []any
	}{
		{"abcdefghij", wire.ACK | wire.CWR, 0xfffffff8, []any{"one"}},
		{"klmnopqrst", wire.ACK, 2, []any{"one", "two"}}, // over the wrap of the sequence space
		{"uvwxy", wire.ACK | wire.PSH | wire.FIN, 12, []any{"two"}},
	} {
		p := &got[i]
		require.Equal(t, want.payload, bytesOf(p))
		require.Equal(t, want.flags, p.Flags)
		require.Equal(t, want.seq, uint32(p.Seq))
		require.Equal(t, want.blocks, p.Blocks)
		require.Equal(t, whole.Ack, p.Ack)
		require.Equal(t, whole.Wnd, p.Wnd)
		require.Equal(t, whole.ECN, p.ECN)
		require.Zero(t, p.SegSize)
		require.True(t, p.Options.Equal(&whole.Options))
	}
	require.Equal(t, "abcdefghijklmnopqrstuvwxy", bytesOf(whole))
}

// An adapter finds a view in its block by the difference of capacities.
func TestSplitKeepsCapacityToEndOfBlock(t *testing.T) {
	block := make([]byte, 100)
	seg := &wire.Segment{Payload: [][]byte{block[10:60]}, SegSize: 20}
	cut := wire.Split(seg)
	var p wire.Segment
	for off := 10; cut.Next(&p); off += 20 {
		require.Equal(t, off, cap(block)-cap(p.Payload[0]))
	}
}

func TestSplitLeavesSmallSegmentsWhole(t *testing.T) {
	for name, seg := range map[string]*wire.Segment{
		"one packet":        {Payload: [][]byte{[]byte("abc")}},
		"not more than one": {Payload: [][]byte{[]byte("abc")}, SegSize: 3},
		"no payload":        {SegSize: 3, Header: wire.Header{Flags: wire.FIN | wire.ACK}},
	} {
		t.Run(name, func(t *testing.T) {
			cut := wire.Split(seg)
			var p wire.Segment
			require.True(t, cut.Next(&p))
			require.Equal(t, bytesOf(seg), bytesOf(&p))
			require.Equal(t, seg.Flags, p.Flags)
			require.False(t, cut.Next(&p))
		})
	}
}

// RFC 9293, Section 3.1: the urgent pointer is "a positive offset from the
// sequence number in this segment".
func TestSplitKeepsUrgentPoint(t *testing.T) {
	seg := &wire.Segment{Payload: [][]byte{make([]byte, 30)}, SegSize: 10}
	seg.Flags, seg.Urgent = wire.ACK|wire.URG, 15
	cut := wire.Split(seg)
	var got []uint16
	var p wire.Segment
	for cut.Next(&p) {
		require.Equal(t, p.Urgent != 0, p.Flags.Has(wire.URG))
		got = append(got, p.Urgent)
	}
	require.Equal(t, []uint16{15, 5, 0}, got)
}
