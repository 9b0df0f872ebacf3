package subflow_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/seq"
	"github.com/gomptcp/gomptcp/internal/subflow"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// Offsets have 64 bits: both directions run over more than 4 GiB, and over
// the wrap of the 32-bit numbers on the way.
func TestBeyond4GiB(t *testing.T) {
	const size = 60000
	h := newEstablished(t, func(c *subflow.Config) { c.MTU, c.MaxWindow = size+20, 1<<20 })
	h.s.HandleSegment(h.now, &wire.Segment{Header: wire.Header{
		Seq: remoteISS.Add(1), Ack: localISS.Add(1), Flags: wire.ACK, Wnd: 65535,
	}})
	h.ctl.cwnd = 10 * size
	payload := make([]byte, size)
	next := func(n uint64) seq.SSN { return seq.SSN(uint32(n)) + 1 }
	var sent, got uint64
	for sent < 5<<30 {
		h.s.SetReceiveWindow(1 << 20)
		h.s.Push(h.now, size)
		for {
			r, ok := h.s.PollSegment(h.now, &h.last)
			if !ok {
				break
			}
			if r.Len > 0 {
				if r.Off != sent || h.last.Seq != localISS+next(sent) {
					t.Fatalf("offset %d, %v after %d bytes", r.Off, &h.last, sent)
				}
				sent += uint64(r.Len)
			}
			if h.last.Ack != remoteISS+next(got) {
				t.Fatalf("%v after %d bytes", &h.last, got)
			}
		}
		h.s.HandleSegment(h.now, &wire.Segment{
			Header:  wire.Header{Seq: remoteISS + next(got), Ack: localISS + next(sent), Flags: wire.ACK, Wnd: 65535},
			Payload: [][]byte{payload},
		})
		var d subflow.Data
		for h.s.NextData(&d) {
			if d.Off != got {
				t.Fatalf("data at %d, want %d", d.Off, got)
			}
			for _, v := range d.Views {
				got += uint64(len(v))
			}
		}
	}
	require.Equal(t, sent, h.s.Acked())
	require.Equal(t, sent, h.s.Pushed())
	require.Equal(t, sent, got)
	require.NoError(t, h.s.CheckInvariants())
}
