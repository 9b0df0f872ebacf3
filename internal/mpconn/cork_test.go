package mpconn

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/wire"
)

// streaming is a connection with super-segments whose window is wide open and
// that has nothing in flight.
type streaming struct {
	*lab
	whole int   // bytes of the largest super-segment
	sizes []int // of the data segments of a since the last look
}

func newStreaming(t *testing.T, delay time.Duration) *streaming {
	return newStreamingOn(t, delay, 1480, 60_000)
}

// newStreamingOn is newStreaming with another MTU, without IP header, and largest
// super-segment.
func newStreamingOn(t *testing.T, delay time.Duration, mtu, super int) *streaming {
	s := &streaming{lab: newLab(t, 1, 1)}
	for _, e := range []*end{s.a, s.b} {
		e.cfg.Path = func(_, _ netip.Addr) (int, int) { return mtu, super }
		e.cfg.WriteBuffer, e.cfg.ReadBuffer = 1<<20, 1<<20
	}
	s.paths[0].delay = delay
	s.paths[0].box = func(from *end, seg *wire.Segment) bool {
		if n := seg.PayloadLen(); from == s.a && n > 0 {
			s.sizes = append(s.sizes, n)
			s.whole = max(s.whole, n)
		}
		return true
	}
	s.connect()
	s.transfer(s.a, s.b, 4<<20, time.Minute, nil)
	s.idle(50 * time.Millisecond) // less than lets the window shrink
	mss := s.a.conn.flows[0].tcp.MSS()
	require.Equal(t, max(super/mss, 1)*mss, s.whole)
	s.sizes = nil
	return s
}

// writeCorked writes n bytes of which more are to follow.
func (s *streaming) writeCorked(n int) {
	s.t.Helper()
	s.write(n)
	s.a.conn.Cork(s.now)
	s.a.pump()
}

// write writes n bytes, and sends nothing yet.
func (s *streaming) write(n int) {
	s.t.Helper()
	p := make([]byte, n)
	for i := range p {
		p[i] = oracle(s.a.salt, s.a.wrote+i)
	}
	require.Equal(s.t, n, s.a.conn.Write(s.now, p))
	s.a.wrote += n
}

// wantSizes checks what was sent since the last look.
func (s *streaming) wantSizes(why string, want ...int) {
	s.t.Helper()
	require.Equal(s.t, want, s.sizes, why)
	s.sizes = nil
}

// few are bytes that wait for another Write.
const few = 1000

func TestLittleWaitsForTheNextWrite(t *testing.T) {
	s := newStreaming(t, 10*time.Millisecond)
	s.writeCorked(s.whole + few)
	s.wantSizes("a whole one", s.whole)
	s.writeCorked(s.whole - few)
	s.wantSizes("another", s.whole)
	s.writeCorked(s.whole / 2)
	s.wantSizes("much does not wait", s.whole/2)
}

// Packets of 64 KiB are as good as super-segments of them; small ones leave at once.
func TestLittleWaitsForLargePackets(t *testing.T) {
	s := newStreamingOn(t, 10*time.Millisecond, 65_000, 0)
	s.writeCorked(s.whole + few)
	s.wantSizes("a whole one", s.whole)
	s = newStreamingOn(t, 10*time.Millisecond, 1480, 0)
	s.writeCorked(s.whole + few)
	s.wantSizes("what there is", s.whole, few)
}

func TestLittleWaitsAMillisecond(t *testing.T) {
	s := newStreaming(t, 10*time.Millisecond)
	s.writeCorked(s.whole + few)
	s.wantSizes("at once", s.whole)
	start := s.now
	s.run("rest", time.Second, func() bool { return len(s.sizes) > 0 })
	require.Equal(t, time.Millisecond, s.now.Sub(start))
	s.wantSizes("then", few)
}

// That everything was acknowledged meanwhile makes no difference: on a short path it
// is before the next Write begins.
func TestLittleWaitsWithNothingInFlight(t *testing.T) {
	s := newStreaming(t, 100*time.Microsecond)
	s.writeCorked(s.whole + few)
	start := s.now
	s.run("ACK", time.Second, func() bool { return s.a.conn.snd.una == s.a.conn.snd.nxt })
	require.Equal(t, 200*time.Microsecond, s.now.Sub(start), "a round trip")
	s.wantSizes("only", s.whole)
	s.writeCorked(s.whole)
	s.wantSizes("another", s.whole)
	require.Equal(t, s.a.wrote, int(s.a.conn.snd.nxt)+few)
}

func TestNothingWaitsForAWriteThatCannotCome(t *testing.T) {
	for name, end := range map[string]func(s *streaming){
		"closed":     func(s *streaming) { s.a.conn.CloseWrite(s.now); s.a.pump() },
		"last Write": func(s *streaming) { s.a.write(1); s.wantSizes("and more", few+1) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStreaming(t, 10*time.Millisecond)
			s.writeCorked(s.whole + few)
			s.wantSizes("at once", s.whole)
			end(s)
			require.Equal(t, s.a.wrote, int(s.a.conn.snd.nxt), "all of it was sent")
		})
	}
}

// What is written in one piece leaves in one, odd or not.
func TestSuperSegmentTakesWhatFillsNoPacket(t *testing.T) {
	s := newStreaming(t, 10*time.Millisecond)
	s.a.write(s.whole/2 + 7)
	s.wantSizes("odd", s.whole/2+7)
	s.a.write(s.whole + 7)
	s.wantSizes("odd beyond a whole one", s.whole, 7)
}
