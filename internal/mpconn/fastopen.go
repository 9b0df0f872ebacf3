package mpconn

import (
	"time"

	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/seq"
	"github.com/gomptcp/gomptcp/internal/subflow"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// TCP Fast Open (RFC 7413) lets the first bytes of a connection go along with
// the SYN. With MPTCP they stand outside the data sequence space.
//
// RFC 8684, Appendix B.2: "the TFO data must not be considered part of the data
// sequence number space: the SYN with MP_CAPABLE still occupies the first octet
// of data sequence space, but then the first non-TFO data byte occupies the
// second octet."
//
// The stream, whose offsets count them all the same, is thus moved against the
// data sequence space by the bytes that the SYN/ACK acknowledged, and so are the
// relative sequence numbers of the first subflow. What the SYN/ACK leaves open
// goes the way of all other data. Nothing is stored for a byte on a SYN that is
// not stored for others: should it be refused, it is sent again from the queue.

// lead is by how many bytes a flow's stream begins before what mappings count:
// the data that went along with its SYN.
type lead struct{ out, in uint64 }

// ssn returns the relative subflow sequence number that a mapping of ours names
// for a subflow offset.
func (l *lead) ssn(off uint64) uint32 { return uint32(off - l.out + 1) }

// remoteSSN is the same for a mapping of the peer's.
func (l *lead) remoteSSN(off uint64) uint32 { return uint32(off - l.in + 1) }

// skip moves the stream n bytes before the space.
func (s *space) skip(n uint64) { s.base -= seq.DSN(n) }

// holdGrace is how long a call that waits for input gives one that writes, before
// the SYN leaves without data: programs often read and write from two
// goroutines, that which reads being the first to come.
const holdGrace = 5 * time.Millisecond

// Held reports whether the SYN waits for the first Write, so that data can go
// along with it.
func (c *Conn) Held() bool { return c.held }

// Connect has a SYN that is held leave without data.
func (c *Conn) Connect() { c.held = false }

// AwaitInput says that the user waits for input. A SYN that is held leaves soon
// then, whether anything is written or not: it may be for the peer to speak first.
// ACKs that were to go along with an answer leave at once. It reports whether that
// changes anything.
func (c *Conn) AwaitInput(now mono.Time) bool {
	any := c.held && !c.timers.At(timerFastOpen).Set()
	if any {
		c.timers.Set(timerFastOpen, now.Add(holdGrace))
	}
	for _, f := range c.flows {
		any = f.tcp.AwaitInput() || any
	}
	return any
}

// FastOpened says what became of the fast open.
func (c *Conn) FastOpened() subflow.FastOpened {
	for _, f := range c.flows {
		if f.id == 0 {
			return f.tcp.FastOpened()
		}
	}
	if c.opened == nil {
		return subflow.FastOpened{}
	}
	return *c.opened
}

// offerSYNData tells a flow that is about to send its SYN what could go along.
//
// RFC 8684, Appendix B.2: "TFO data is always only sent on the initial subflow,
// before any attempt to create additional subflows."
func (c *Conn) offerSYNData(f *flow) {
	if c.active && f.join == nil && f.phase == phaseOpening {
		f.tcp.OfferSYNData(int(c.snd.q.End()))
	}
}

// putSYNData adds the first n bytes of the stream to a SYN.
func (c *Conn) putSYNData(seg *wire.Segment, n int) {
	if n > 0 {
		seg.Payload, seg.Blocks = c.snd.q.Views(0, n, seg.Payload, seg.Blocks)
		c.stats.BytesSent += uint64(n)
	}
}

// synDataAcked accounts, once the active opener's handshake is done, for the
// data that the SYN/ACK acknowledged.
//
// RFC 8684, Appendix B.3: "the listener acknowledges only part of the TFO data
// [...]. The initiator will simply retransmit the missing data together with a
// DSS mapping."
func (c *Conn) synDataAcked(now mono.Time, f *flow) {
	n := uint64(f.tcp.FastOpened().Acked)
	if !c.active || f.join != nil || n == 0 {
		return
	}
	f.lead.out = n
	f.run, f.runEnd = n, n
	c.snd.skip(n)
	c.snd.take(0, n)
	c.dataAcked(n)
	if c.mode != modePlain {
		c.snd.edge += n // the window of the SYN/ACK begins behind them
		c.timers.Set(timerFastOpen, now.Add(max(f.tcp.Snapshot().SRTT/4, time.Millisecond)))
	}
}

// maxProofs is how often proof is asked for before keepalives have to do.
const maxProofs = 3

// askProof has the peer acknowledge that it has our key. After a fast open there
// may be nothing to send that would, while the peer has an answer.
//
// RFC 8684, Section 3.1, of the third ACK: "A's key must be delivered reliably to
// B, and in order to do this, the transmission of this packet must be made
// reliable." Linux, up to 6.18 at least, takes an answer that is ready
// before the third ACK and sends it with the next DATA_ACK only, which it gets
// when the proof has come.
func (c *Conn) askProof(now mono.Time) {
	f := c.flow(0)
	if c.joinable || c.mode != modeMPTCP || f == nil || c.snd.una < c.snd.nxt {
		return
	}
	f.tcp.Probe()
	if c.proofs++; c.proofs < maxProofs {
		c.timers.Set(timerFastOpen, now.Add(f.tcp.RTO()<<c.proofs))
	}
}

// takeSYNData takes, as the passive opener, the data of a SYN with a good
// cookie. The connection is usable from here on; whether it is MPTCP shows with
// the third ACK.
func (c *Conn) takeSYNData(f *flow) {
	var d subflow.Data
	for f.tcp.NextData(&d) {
		for _, v := range d.Views {
			f.got += uint64(len(v))
		}
		c.deliver(f, d.Off, d.Views, d.Owner)
	}
	f.lead.in = f.got
	f.early = true
	c.connected = true
	c.emit(pending{kind: EventConnected})
}

// proveEarly sees to it, as the passive opener that has the peer's key now, that
// the peer learns of that, if it was sent data before: what the peer sends until
// then has MP_CAPABLE in the place of the DATA_ACK.
func (c *Conn) proveEarly(now mono.Time, f *flow) {
	if c.snd.nxt > 0 {
		f.tcp.RequestAck()
		c.armDataRexmit(now)
	}
}

// synData returns how many bytes went along with the SYN and were taken, in
// either direction.
func (c *Conn) synData() int {
	o := c.FastOpened()
	return o.Acked + o.Taken
}
