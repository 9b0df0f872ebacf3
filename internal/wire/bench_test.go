package wire_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/wire"
)

// Nothing on the way of a segment allocates, whatever options it has.
func TestNoAllocations(t *testing.T) {
	var seg wire.Segment
	var b [wire.MaxHeader]byte
	for _, v := range vectors(t) {
		h := header(v.options)
		require.Zero(t, testing.AllocsPerRun(20, func() {
			wire.Parse(h, &seg)
			wire.Build(&b, &seg)
			wire.Fit(&seg.Options, true)
		}), v.name)
	}
	src, dst := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2")
	whole, h := super(), header(nil)
	var p wire.Segment
	var sum uint16
	require.Zero(t, testing.AllocsPerRun(20, func() {
		sum = wire.TCPChecksum(src, dst, h, whole.Payload)
		sum += wire.DSSChecksum(wire.SumViews(whole.Payload, 0), 1, 2, 3)
		cut := wire.Split(whole)
		for cut.Next(&p) {
		}
	}))
	require.NotZero(t, sum)
	ps := packets(whole)
	run := *ps[0]
	run.Payload, run.Blocks = make([][]byte, 0, 8), make([]any, 0, 8)
	require.Zero(t, testing.AllocsPerRun(20, func() {
		run.Header, run.SegSize = ps[0].Header, 0
		run.Payload, run.Blocks = append(run.Payload[:0], ps[0].Payload...), append(run.Blocks[:0], ps[0].Blocks...)
		if !wire.Merge(&run, ps[1]) || !wire.Merge(&run, ps[2]) {
			panic("not merged")
		}
	}))
}

func BenchmarkParse(b *testing.B) {
	for _, v := range vectors(b) {
		switch v.name {
		case "data_full", "syn_all", "timestamps", "sack_3_timestamps":
		default:
			continue
		}
		b.Run(v.name, func(b *testing.B) {
			b.ReportAllocs()
			h := header(v.options)
			var seg wire.Segment
			for b.Loop() {
				wire.Parse(h, &seg)
			}
		})
	}
}

func BenchmarkBuild(b *testing.B) {
	for _, v := range vectors(b) {
		switch v.name {
		case "data_full", "syn_all", "timestamps", "sack_3_timestamps":
		default:
			continue
		}
		b.Run(v.name, func(b *testing.B) {
			b.ReportAllocs()
			var seg wire.Segment
			wire.Parse(header(v.options), &seg)
			var buf [wire.MaxHeader]byte
			for b.Loop() {
				wire.Build(&buf, &seg)
			}
		})
	}
}

func BenchmarkSum(b *testing.B) {
	for name, n := range map[string]int{"40": 40, "1448": 1448, "65536": 65536} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(n))
			data := make([]byte, n)
			for b.Loop() {
				wire.Sum(data, 0)
			}
		})
	}
}

// BenchmarkSplit cuts 64 KB into packets of 1420 bytes.
func BenchmarkSplit(b *testing.B) {
	b.ReportAllocs()
	whole := super()
	whole.Payload, whole.Blocks, whole.SegSize = [][]byte{make([]byte, 64000)}, []any{"one"}, 1420
	var p wire.Segment
	for b.Loop() {
		cut := wire.Split(whole)
		for cut.Next(&p) {
		}
	}
}
