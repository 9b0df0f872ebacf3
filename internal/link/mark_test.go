package link_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/link"
)

// At 8 Mb/s packets of 1000 bytes leave each millisecond. Those that find more
// than 5000 bytes waiting are marked if they can be; what waits is not changed
// by that.
func TestStepMarking(t *testing.T) {
	l := link.New(link.Config{Rate: 8e6, QueueBytes: 10_000, MarkBytes: 5000}, nil)
	for i := range 10 {
		v := l.Offer(start, 1000, true)
		require.Equal(t, link.Delivered, v.Drop)
		require.Equal(t, i > 5, v.Mark, "packet %d finds %d bytes", i, i*1000)
	}
	require.Equal(t, link.DropQueue, l.Offer(start, 1000, true).Drop, "a full queue drops all")
	require.False(t, l.Offer(after(1000), 1000, false).Mark, "cannot be marked")
	require.True(t, l.Offer(after(2000), 1000, true).Mark)
	require.False(t, l.Offer(after(9000), 1000, true).Mark, "three wait")
}

// RED at the corners: nothing below Min, everything above Max, and between
// them the share that its line says, of packets dropped that can't be marked.
func TestRED(t *testing.T) {
	red := link.RED{Min: 2000, Max: 6000, MaxP: .2, Weight: 1} // the average is the length
	share := func(waiting int, ect bool) (marked, dropped float64) {
		const n = 20_000
		l := link.New(link.Config{Rate: 8e6, QueueBytes: 1 << 20, RED: red}, seeded(1))
		now := start
		for range n {
			// Keeps the queue at one length: what leaves is offered again.
			for l.Backlog(now) < waiting {
				l.Offer(now, 1000, ect)
			}
			switch v := l.Offer(now, 1000, ect); {
			case v.Drop == link.DropRED:
				dropped++
			case v.Mark:
				marked++
			}
			for l.Backlog(now) > waiting {
				now = now.Add(1e6)
			}
		}
		return marked / n, dropped / n
	}
	marked, dropped := share(1000, true)
	require.Zero(t, marked+dropped, "below Min")
	marked, dropped = share(7000, true)
	require.Equal(t, 1.0, marked, "above Max")
	require.Zero(t, dropped)
	// Halfway p is .1; gaps are even between 1 and 1/p, so that 2p/(1+p) of the
	// packets are chosen: .18 (Floyd and Jacobson, Section VII, method 2).
	marked, _ = share(4000, true)
	require.InDelta(t, .18, marked, .02)
	marked, dropped = share(4000, false)
	require.Zero(t, marked)
	require.InDelta(t, .18, dropped, .02)
}

// The average follows the queue by its weight: one packet in ten thousand
// bytes of burst is nothing.
func TestREDAverages(t *testing.T) {
	l := link.New(link.Config{Rate: 8e6, QueueBytes: 1 << 20, RED: link.RED{Min: 2000, Max: 6000}}, seeded(1))
	for range 10 {
		require.False(t, l.Offer(start, 1000, true).Mark)
	}
}
