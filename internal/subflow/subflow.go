package subflow

import (
	"net/netip"
	"time"

	"github.com/gomptcp/gomptcp/cc"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/seq"
	"github.com/gomptcp/gomptcp/internal/timer"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// Config is what a subflow is made from.
type Config struct {
	*Ends    // not changed, and kept
	ISS      seq.SSN
	TSOffset uint32 // added to the timestamp clock, which ticks once a millisecond

	// MTU is how many bytes of TCP header, options and payload one packet of
	// the path can carry; at least 100.
	MTU int
	// SegmentMax is how many payload bytes a super-segment may have; less
	// than MSS means one packet each.
	SegmentMax int
	Room       Room

	// Marks is how the congestion control uses ECN; ECNAsSet leaves it to Knobs.
	Marks cc.ECN

	FastOpen FastOpen // RFC 7413

	// Knobs are not changed, and kept: any number of subflows may share them.
	*Knobs
}

// Ends are the addresses and ports of a subflow.
type Ends struct{ Local, Remote netip.AddrPort }

// Knobs are what a subflow has in common with others. Where 0 stands for a
// default, it is named.
type Knobs struct {
	// StartMTU is the size to begin with, while larger packets, up to MTU, are
	// probed for (RFC 8899); 0 = MTU.
	StartMTU int
	// MaxWindow is the largest receive window that will ever be advertised,
	// in bytes; it chooses the window scale. 0 = 65535.
	MaxWindow int

	// Pacing spreads what is sent over the round trip also where the congestion
	// control names no rate: at twice the congestion window a round trip in
	// slow start and 1.2 times after.
	Pacing bool

	NoTimestamps bool // neither offer nor accept timestamps (RFC 7323)
	NoSACK       bool // neither offer nor accept SACK (RFC 2018)
	NoRACK       bool // find losses by DupThresh alone, without RACK-TLP (RFC 8985)
	Nagle        bool // RFC 9293, Section 3.7.4
	ECN          bool // offer and accept Explicit Congestion Notification (RFC 3168)
	ExactECN     bool // where ECN is agreed, echo each change of CE (RFC 8257, Section 3.2)

	InitialRTO time.Duration // 0 = 1 s
	// MinRTO is the least retransmission timeout, 0 = 200 ms.
	// Deviation: RFC 6298 asks for 1 s; 200 ms is what is deployed.
	MinRTO time.Duration
	MaxRTO time.Duration // 0 = 60 s
	// SYNRetries is how often SYN and SYN/ACK are sent again before giving up;
	// 0 = 7, after which more than four minutes have passed: RFC 9293, Section
	// 3.8.3, wants "at least 3 minutes" (MUST-23).
	SYNRetries int
	Retries    int // how often data, FIN and window probes are; 0 = 15

	// UserTimeout is how long what was sent may stay unacknowledged, before the
	// subflow ends with CloseTimeout (RFC 5482); 0 = as long as the retries.
	// The peer is not told.
	UserTimeout time.Duration

	// ChallengeACKs is how many segments a second that carry nothing for us are
	// answered (RFC 5961, Section 7); 0 = 10.
	ChallengeACKs int

	DelayedACK time.Duration // 0 = 40 ms; negative = acknowledge at once
	// PutOff lets the ACK of a FIN, and of the first segments too if they are all
	// that the peer has to say, wait for the user's answer. Whoever sets it calls
	// AwaitInput when the user waits for more.
	PutOff    bool
	KeepAlive KeepAlive
	// FinWait2 bounds how long a subflow whose FIN is acknowledged waits for
	// the peer's FIN without receiving data; 0 = 60 s.
	FinWait2 time.Duration

	DupThresh     int // duplicate ACKs that mean a loss; 0 = 3. RACK relies on it until it sees reordering
	InitialWindow int // segments, also of the window after idleness; 0 = 10
	// InitialSsthresh is for whoever makes the controller, in bytes; 0 = none.
	// The subflow itself does not look at it.
	InitialSsthresh int

	complete bool // every default is filled in
}

// Room is how many of the 40 bytes for options are kept free for the
// connection, in multiples of 4.
type Room struct {
	SYN  uint8 // on SYN and SYN/ACK; at most 20
	Data uint8 // on segments with payload; at most 28
	ACK  uint8 // on segments without; at most 28
}

// KeepAlive configures probes of an idle peer (RFC 9293, Section 3.8.4).
type KeepAlive struct {
	// Idle is how long nothing must have arrived before the first probe; 0 =
	// 15 s, negative = no probes.
	// Deviation: RFC 9293 wants keepalives off by default and idle for two
	// hours; the default here is that of Go's net package.
	Idle     time.Duration
	Interval time.Duration // between probes; 0 = 15 s
	Count    int           // unanswered probes that end the subflow; 0 = 9
}

// Sizes from RFC 9293 and RFC 7323.
const (
	headerLen     = 20 // of TCP without options
	maxOptionsLen = 40
	timestampsLen = 12 // option and padding
	maxShift      = 14 // RFC 7323, Section 2.3
	minMTU        = 100
)

func orDefault[T int | time.Duration](v, def T) T {
	if v == 0 {
		return def
	}
	return v
}

// Complete returns k with every zero that stands for a default replaced: k
// itself if it came from here. Nil stands for all defaults.
func (k *Knobs) Complete() *Knobs {
	if k == nil {
		k = &Knobs{}
	}
	if k.complete {
		return k
	}
	c := *k
	c.complete = true
	c.MaxWindow = min(orDefault(c.MaxWindow, 65535), 65535<<maxShift)
	c.InitialRTO = orDefault(c.InitialRTO, time.Second)
	c.MinRTO = orDefault(c.MinRTO, 200*time.Millisecond)
	c.MaxRTO = max(orDefault(c.MaxRTO, 60*time.Second), c.MinRTO)
	c.SYNRetries = orDefault(c.SYNRetries, 7)
	c.Retries = orDefault(c.Retries, 15)
	c.DelayedACK = orDefault(c.DelayedACK, 40*time.Millisecond)
	c.ChallengeACKs = orDefault(c.ChallengeACKs, 10)
	c.FinWait2 = orDefault(c.FinWait2, 60*time.Second)
	c.DupThresh = orDefault(c.DupThresh, 3)
	c.InitialWindow = orDefault(c.InitialWindow, 10)
	c.KeepAlive = c.KeepAlive.withDefaults()
	return &c
}

func (k KeepAlive) withDefaults() KeepAlive {
	k.Idle = orDefault(k.Idle, 15*time.Second)
	k.Interval = orDefault(k.Interval, 15*time.Second)
	k.Count = orDefault(k.Count, 9)
	return k
}

func (r Room) clamp() Room {
	const most = maxOptionsLen - timestampsLen
	return Room{SYN: min(r.SYN, maxOptionsLen-synOptionsLen), Data: min(r.Data, most), ACK: min(r.ACK, most)}
}

// Subflow is one TCP connection. It must be made by Open or Accept.
type Subflow struct {
	cfg *Knobs // complete
	ctl cc.Controller

	ends       *Ends
	mtu        int // that this end's link takes
	segmentMax int
	tsOffset   uint32
	room       Room

	state  State
	active bool // we sent the first SYN
	early  bool // data may be sent in SYN-RECEIVED, after a fast open
	// still says that nothing has happened since the last poll found nothing to
	// send, so that the next one need not look.
	still       bool
	unreachable bool // the network said so and nothing was acknowledged since
	reply       reply

	snd    sender
	queue  records
	rcv    receiver
	ts     timestamps
	rtt    estimator
	rec    recovery
	rack   rack
	pace   pacer
	search *search // nil = nothing was looked for
	ecn    ecn
	fast   *fastOpen // nil = has no part in one
	rate   delivery
	shown  *cc.Sample // memory for what the controller is shown

	timers  timer.Table[timerKind]
	alive   liveness
	limiter limiter
	events  []Event
	count   counters

	moves uint64 // see Moves
	full  uint64 // moves at which Room found a window full, with data in flight
}

// Open begins a connection as the client. The first PollSegment gives the
// SYN.
func Open(now mono.Time, cfg Config, ctl cc.Controller) *Subflow {
	s := newSubflow(cfg, ctl)
	s.active = true
	s.state = StateSynSent
	return s
}

// Accept begins a connection as the server that received syn. The first
// PollSegment gives the SYN/ACK. If it keeps the payload, which it does with
// Config.FastOpen.Take only, it takes syn.Owner and sets it nil.
func Accept(now mono.Time, cfg Config, ctl cc.Controller, syn *wire.Segment) *Subflow {
	s := newSubflow(cfg, ctl)
	s.state = StateSynReceived
	s.synchronize(now, syn)
	s.takeSYNData(syn)
	return s
}

func newSubflow(cfg Config, ctl cc.Controller) *Subflow {
	k := cfg.Complete()
	s := &Subflow{
		cfg: k, ctl: ctl, ends: cfg.Ends, tsOffset: cfg.TSOffset,
		mtu: max(cfg.MTU, minMTU), segmentMax: cfg.SegmentMax, room: cfg.Room.clamp(),
	}
	start := min(max(orDefault(k.StartMTU, s.mtu), minMTU), s.mtu)
	s.snd = sender{iss: cfg.ISS, end: 1, peerMSS: defaultMSS(cfg.Remote.Addr()), mtu: start}
	s.rcv = receiver{nxt: 1, lastAck: 1, quick: quickACKs}
	s.SetReceiveWindow(min(k.MaxWindow, 65535))
	s.rtt = estimator{rto: k.InitialRTO, knobs: k}
	s.rec.dupThresh, s.rec.episode = int32(k.DupThresh), &noEpisode
	s.ecn.wanted = k.ECN || cfg.Marks != cc.ECNAsSet
	s.ecn.exact = k.ExactECN && cfg.Marks == cc.ECNAsSet || cfg.Marks == cc.ECNExact
	if cfg.FastOpen != (FastOpen{}) {
		s.fast = &fastOpen{cfg: cfg.FastOpen}
	}
	s.updateMSS()
	return s
}

// Local returns the local address and port.
func (s *Subflow) Local() netip.AddrPort { return s.ends.Local }

// Remote returns the peer's address and port.
func (s *Subflow) Remote() netip.AddrPort { return s.ends.Remote }

// MSS returns how many payload bytes a full data segment has, beside the
// options of the subflow and Room.Data bytes for those of the connection.
func (s *Subflow) MSS() int { return s.snd.mss }

// Acked returns the stream offset below which everything is acknowledged.
func (s *Subflow) Acked() uint64 {
	return uint64(max(1, min(s.snd.una, s.snd.end)) - 1)
}

// Pushed returns the stream offset of the next byte to be pushed.
func (s *Subflow) Pushed() uint64 { return uint64(s.snd.end - 1) }

// InFlight returns the estimate of bytes that are in the network.
func (s *Subflow) InFlight() int { return s.pipe() }

// RTO returns the retransmission timeout now in force, backoff included.
func (s *Subflow) RTO() time.Duration { return s.rtt.timeout() }

// MinRTT returns the least round trip measured; 0 before the first.
func (s *Subflow) MinRTT() time.Duration { return s.rtt.min }

// SetRoom changes what is kept free for the connection's options.
func (s *Subflow) SetRoom(r Room) {
	s.stir()
	s.room = r.clamp()
	s.updateMSS()
}

// SetController changes the congestion controller. The new one begins where it
// was made to; a recovery under way goes on towards its window.
func (s *Subflow) SetController(ctl cc.Controller) {
	s.stir()
	s.ctl = ctl
	s.rec.forgetUndo()
}

// SACK reports whether the peer sends and takes SACK blocks.
func (s *Subflow) SACK() bool { return s.snd.sack }

// SetNagle turns the Nagle algorithm on or off.
func (s *Subflow) SetNagle(on bool) {
	s.stir()
	s.turn(func(k *Knobs) { k.Nagle = on })
}

// turn changes knobs of this subflow alone.
func (s *Subflow) turn(change func(*Knobs)) {
	k := *s.cfg
	change(&k)
	s.cfg = &k
}

// drop counts a segment, or a part of one, as ignored.
func (s *Subflow) drop(r reason.Drop) Verdict {
	s.count.drops.Count(r)
	return Dropped
}
