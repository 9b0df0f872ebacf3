package mpconn

import (
	"maps"
	"net/netip"

	"github.com/gomptcp/gomptcp/internal/key"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/subflow"
)

// Stats are all totals of a connection.
type Stats struct {
	Totals
	Oddities
}

// Totals are those of what happens to every connection, its ended subflows
// included.
type Totals struct {
	BytesSent       uint64 // payload, every copy counted
	BytesAcked      uint64 // DATA_ACKed
	BytesReceived   uint64 // new payload placed in the stream
	BytesDuplicate  uint64 // payload received again
	BytesReinjected uint64 // sent again on another subflow
	SegmentsSent    uint64
	ChecksumErrors  uint64 // DSS checksums that did not hold
	Announcements   uint64 // ADD_ADDRs whose HMAC verified
	JoinsAnswered   uint64 // SYN/ACKs to joins begun here whose HMAC verified
	Drops           reason.Drops
}

// Oddities are totals of what is not the rule.
type Oddities struct {
	OutOfOrder     uint64 // runs of payload received beyond a hole
	OutOfOrderTail uint64 // of these, those behind all others
	// OutOfOrderMerged are those that begin where what was received before ends.
	OutOfOrderMerged uint64
	Duplicates       uint64 // runs of payload received that brought nothing new
	FarMappings      uint64 // mappings dropped because the subflow cannot carry them yet
	EchoesDropped    uint64 // echoes of announcements not sent because too many were due
	Stale            uint64 // subflows that did not answer in time
	Recovered        uint64 // and then did
	AddrsRefused     uint64 // valid announcements of addresses that were not taken
	FallbacksFailed  uint64 // signs of a path without MPTCP when it was too late to fall back
	ChecksumResets   uint64 // subflows reset for a checksum that did not hold
	WindowProbes     uint64 // questions whether the window is still closed
	AnnouncesDropped uint64 // addresses not announced because no id was left
}

// noOddities are those of connections without. Nobody changes them.
var noOddities Oddities

// oddity returns the totals of what is not the rule, to add to.
func (c *Conn) oddity() *Oddities {
	if c.oddities == &noOddities {
		c.oddities = &Oddities{}
	}
	return c.oddities
}

// Totals returns the totals up to now. They change with the connection and
// must not be written to.
func (c *Conn) Totals() *Totals { return &c.stats }

// Oddities is Totals for the rest.
func (c *Conn) Oddities() *Oddities { return c.oddities }

// cloneStats returns all of them in a copy that the connection does not change.
func (c *Conn) cloneStats() Stats {
	s := Stats{c.stats, *c.oddities}
	s.Drops = maps.Clone(s.Drops)
	return s
}

// Info is a snapshot of a connection.
type Info struct {
	State     State
	MPTCP     bool
	Joinable  bool
	Checksum  bool
	Fallback  reason.Fallback
	Close     reason.Close
	Token     key.Token // ours; a peer's MP_JOIN names it
	PeerToken key.Token
	Subflows  int // up now
	Opened    int // ever begun

	SYNData int // bytes that went along with the SYN and were taken

	Unsent      int    // bytes written, never sent
	Unacked     int    // bytes sent, not DATA_ACKed
	Readable    int    // bytes received in order, not read
	OutOfOrder  int    // bytes received beyond a hole
	SendWindow  int    // bytes the peer's window still allows
	Window      int    // bytes advertised to the peer
	ReadBuffer  int    // bytes the receive buffer may hold now
	WriteBuffer int    // and the send buffer
	SendMemory  int    // bytes of send buffer held
	RecvMemory  int    // bytes of receive buffer held
	NextDSN     uint64 // of the first byte never sent
	NextAck     uint64 // the DATA_ACK we send
	Stats       Stats
}

// Info returns a snapshot.
func (c *Conn) Info() Info {
	s := &c.snd
	return Info{
		State: c.State(), MPTCP: c.mode == modeMPTCP, Joinable: c.Joinable(), Checksum: c.checksum,
		Fallback: c.fallback, Close: c.err, Token: c.localToken, PeerToken: c.remoteToken,
		Subflows: c.live(), Opened: c.nextID, SYNData: c.synData(),
		Unsent: c.Unsent(), Unacked: int(s.nxt - min(s.una, s.nxt)),
		Readable: c.rcv.q.Readable(), OutOfOrder: c.rcv.q.Buffered() - c.rcv.q.Readable(),
		SendWindow: int(s.edge - min(s.nxt, s.edge)), Window: int(c.rcv.adv - min(c.rcv.adv, c.rcv.q.Next())),
		ReadBuffer: c.rcv.buffer.limit, WriteBuffer: s.buffer.limit,
		SendMemory: s.q.Memory(), RecvMemory: c.rcv.q.Memory(),
		NextDSN: uint64(s.dsn(s.nxt)), NextAck: uint64(c.rcv.dsn(c.rcv.ack())),
		Stats: c.cloneStats(),
	}
}

// SubflowInfo is a snapshot of a subflow, live or ended.
type SubflowInfo struct {
	ID              int
	Local, Remote   netip.AddrPort
	RemoteID        uint8
	Initial         bool // the first one, by MP_CAPABLE
	Up              bool // may carry data
	Backup          bool // we asked the peer not to send here
	PeerBackup      bool // the peer asked us not to send here
	Stale           bool // a retransmission timeout is unanswered
	BytesReinjected uint64
	Close           reason.Close // how it ended; CloseNone while it lives
	Reset           reason.Reset // code of the peer's reset
	TCP             subflow.Stats
}

// AppendSubflows appends a snapshot of every subflow, ended ones first, the
// oldest of which are forgotten beyond a bound.
func (c *Conn) AppendSubflows(dst []SubflowInfo) []SubflowInfo {
	dst = append(dst, c.past...)
	for _, f := range c.flows {
		dst = append(dst, f.info())
	}
	return dst
}

func (f *flow) info() SubflowInfo {
	return SubflowInfo{
		ID: f.id, Local: f.tcp.Local(), Remote: f.tcp.Remote(), RemoteID: f.remoteID,
		Initial: f.join == nil, Up: f.phase == phaseUp, Backup: f.backupLocal, PeerBackup: f.backupRemote,
		Stale: f.stale, BytesReinjected: f.reinjected, Reset: f.peerReset, TCP: f.tcp.Stats(),
	}
}

// maxPast bounds the ended subflows that are remembered.
const maxPast = 32

// remember keeps the last snapshot of a flow that ends.
func (c *Conn) remember(f *flow, why reason.Close) {
	s := f.info()
	s.Up, s.Close = false, why
	if len(c.past) == maxPast {
		c.past = append(c.past[:0], c.past[1:]...)
	}
	if c.past == nil {
		c.past = make([]SubflowInfo, 0, len(c.flows)) // mostly all of them end
	}
	c.past = append(c.past, s)
}
