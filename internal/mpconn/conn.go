package mpconn

import (
	"cmp"
	"math"

	"github.com/gomptcp/gomptcp/cc"
	"github.com/gomptcp/gomptcp/internal/interval"
	"github.com/gomptcp/gomptcp/internal/key"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/stream"
	"github.com/gomptcp/gomptcp/internal/subflow"
	"github.com/gomptcp/gomptcp/internal/wire"
	"github.com/gomptcp/gomptcp/scheduler"
)

// mode says what the connection speaks.
type mode uint8

const (
	modeUndecided mode = iota // MP_CAPABLE was sent, its answer is not in
	modeMPTCP                 // both keys are known
	modePlain                 // TCP, from the start or after a fallback
)

// Conn is one connection. Its methods come in families, one file each:
// capable, join (handshakes), senddata, schedule, mapping, reinject (out),
// recvdata (in), dataack (acknowledgments and windows), addr, prio (options
// about paths), close, fastclose, fallback, fail (ends), poll and timers (driving).
type Conn struct {
	cfg    *Settings      // complete
	knobs  *subflow.Knobs // complete; of subflows to come
	ends   subflow.Ends   // of the first subflow
	active bool
	offers uint8 // SYNs with MP_CAPABLE

	mode      mode
	fallback  reason.Fallback
	connected bool // first subflow's handshake done
	joinable  bool // MPTCP was proven in both directions: joins allowed
	added     bool // a further subflow has come up: no fallback for lost options
	checksum  bool // DSS checksums are in use
	single    bool // the only subflow was closed by a RST with MP_FAIL
	held      bool // the SYN waits for data that could go along with it
	over      bool // EventClosed was emitted
	err       reason.Close

	userClosed  bool
	denyInitial bool         // the peer's flag C
	ending      reason.Close // why every subflow is being reset
	orphanedBy  reason.Close // how the last subflow ended
	closing     fastClose

	localKey, remoteKey     key.Key
	localToken, remoteToken key.Token
	stopped                 uint32 // bit l = EventJoinStopped was emitted for reason.Limit l
	proofs                  uint8  // how often proof was asked for

	opened *subflow.FastOpened // kept of a first flow that is gone

	flows  []*flow       // live ones in order of id
	nextID int           // ids only grow
	past   []SubflowInfo // of ended subflows, bounded
	cursor int           // where the next poll of flows begins

	snd   sendSide
	rcv   recvSide
	addrs addresses
	// withdrawOn is the flow that due REMOVE_ADDRs wait for.
	withdrawOn *flow

	sched    scheduler.Scheduler
	flowSize int64 // bytes that the user will write; 0 = unknown
	hint     int64 // what the user told the scheduler

	onDecision func(*scheduler.View, scheduler.Decision) // nil = nobody wants to know
	group      cc.Group
	sharedSeen uint64 // version of what group found out about bottlenecks, told last

	*look // nil while nothing is to be scheduled

	timers  timerTable
	backoff int // of DataRexmit

	lastMoved *moved // when timerShrink was set
	events    []pending
	stats     Totals
	oddities  *Oddities                  // of oddity, to be changed
	placed    func(mono.Time, Placement) // nil = nobody wants to know
}

// sendSide is the outgoing half.
type sendSide struct {
	space
	buffer   buffer
	q        stream.SendQ // by offset
	una      uint64       // first offset not DATA_ACKed; the DATA_FIN counts
	nxt      uint64       // end of what was ever sent
	edge     uint64       // right edge of the peer's window
	holes    interval.Set // never sent though below nxt (a scheduler's choice)
	reinject interval.Set // sent before and due on another subflow
	lostTo   uint64       // end of what may have been lost with a subflow that acknowledged it
	cut      bool         // the last Write left no room for more
	overdue  overdue      // whether a DATA_ACK is
	closed   bool         // a DATA_FIN follows the last byte
	finSent  bool         // the DATA_FIN went out at least once
	finAgain bool         // and must go out again
	idle     bool         // nothing could be scheduled since the last input
	full     bool         // and that because all windows are in use
	waited   bool         // the flows were told that bytes wait
	withFIN  bool         // it went along with FINs
	finOn    *flow        // where the DATA_FIN went last by itself
	heldAt   mono.Time    // since when the scheduler waits though no event is on its way
	corked   mono.Time    // until when another Write is expected; 0 = none is
}

// finAcked reports whether the peer acknowledged our DATA_FIN.
func (s *sendSide) finAcked() bool { return s.closed && s.una == s.q.End()+1 }

// recvSide is the incoming half.
type recvSide struct {
	space
	buffer   buffer
	round    round
	q        stream.RecvQ // by offset
	high     uint64       // end of what was ever received
	adv      uint64       // right edge advertised; never moves left
	fin      uint64       // offset of the DATA_FIN
	hasFin   bool
	finFirst bool // the peer's DATA_FIN arrived before ours was queued
	discard  bool // the user reads no more
	late     bool // something arrived after the user closed
	lastOn   *flow
}

// eof reports whether everything up to the peer's DATA_FIN arrived.
func (r *recvSide) eof() bool { return r.hasFin && r.q.Next() >= r.fin }

// ack returns the offset a DATA_ACK names: the next one expected.
func (r *recvSide) ack() uint64 {
	if r.eof() {
		return r.fin + 1
	}
	return r.q.Next()
}

// newConn returns what both roles share.
func newConn(cfg *Config, active bool) *Conn {
	c := &Conn{cfg: cfg.Complete(), active: active, ends: subflow.Ends{Local: cfg.Local, Remote: cfg.Remote}}
	c.knobs, c.offers = c.cfg.knobs, defaultSYNsWithMPTCP
	if cfg.SYNsWithMPTCP > 0 {
		c.offers = uint8(min(cfg.SYNsWithMPTCP, math.MaxUint8))
	}
	c.snd.q = *stream.NewSendQ(c.cfg.Alloc, 0)
	c.snd.buffer, c.rcv.buffer = c.newBuffer(c.cfg.WriteBuffer), c.newBuffer(c.cfg.ReadBuffer)
	c.rcv.adv = uint64(c.rcv.buffer.limit)
	c.sched, c.flowSize = c.cfg.Scheduler(), cfg.FlowSize
	c.group = c.cfg.Congestion()
	c.addrs.signaling, c.oddities = &noSignaling, &noOddities
	if cfg.Plain {
		c.mode, c.fallback = modePlain, cmp.Or(cfg.PlainWhy, reason.FallbackRequested)
		c.snd.edge = noEdge
	} else {
		c.addrs.signaling = &signaling{}
		c.addrs.init(cfg.Local, cfg.Remote)
		c.localKey = cfg.Key
		token, idsn := c.localKey.Derive()
		c.localToken = token
		c.snd.setIDSN(idsn)
	}
	return c
}

// Dial begins a connection as the active opener.
func Dial(now mono.Time, cfg *Config) *Conn {
	c := newConn(cfg, true)
	f := c.addFlow(flowArgs{local: cfg.Local, remote: cfg.Remote})
	f.tcp = subflow.Open(now, c.firstConfig(now, f, cfg), f.ctl)
	c.held = cfg.Hold
	c.emit(pending{kind: EventSubflowOpened, f: f})
	return c
}

// Accept begins a connection as the passive opener, from a SYN. If it keeps the
// payload it takes syn.Owner and sets it nil.
func Accept(now mono.Time, cfg *Config, syn *wire.Segment) *Conn {
	c := newConn(cfg, false)
	f := c.addFlow(flowArgs{local: cfg.Local, remote: cfg.Remote})
	c.acceptCapable(syn)
	f.tcp = subflow.Accept(now, c.firstConfig(now, f, cfg), f.ctl, syn)
	if c.mode != modePlain {
		c.snd.edge = uint64(syn.Wnd)
	}
	c.emit(pending{kind: EventSubflowOpened, f: f})
	if cfg.FastOpen.Take {
		c.takeSYNData(f)
	}
	return c
}

// HandleSegment takes a segment that arrived on subflow id.
func (c *Conn) HandleSegment(now mono.Time, id int, seg *wire.Segment) {
	f := c.flow(id)
	if f == nil {
		c.drop(reason.DropNoConn)
		return
	}
	if !c.admit(f, seg) {
		c.drop(reason.DropState)
		return
	}
	c.snd.idle = false
	if f.tcp.HandleSegment(now, seg) == subflow.Accepted {
		f.heard(now)
		c.stampHeard(f, seg)
		if seg.Has&wire.OptTimestamps != 0 && len(seg.Payload) > 0 {
			f.measureEcho(now, seg.TSEcr)
		}
		c.handleOptions(now, f, seg)
	}
	c.collect(now, f)
	c.tellShared()
}

// handleOptions acts on the MPTCP options of a segment that passed TCP's own
// checks.
//
// RFC 8684, Section 3: "standard TCP validity checks [...] MUST be undertaken
// before processing any MPTCP signals".
func (c *Conn) handleOptions(now mono.Time, f *flow, seg *wire.Segment) {
	if c.mode == modePlain {
		c.checkPlain(now, f, seg)
		return
	}
	if f.phase != phaseUp {
		c.handshake(now, f, seg)
		// Until a join is verified it may be anybody's, who has no say.
		stranger := f.phase == phaseOpening && seg.Flags&wire.RST == 0
		if c.mode != modeMPTCP || f.phase == phaseDead || stranger {
			return
		}
	}
	if seg.Flags&wire.RST != 0 {
		c.handleReset(now, f, seg)
		return
	}
	if seg.Has&(wire.OptMPTCP&^wire.OptDSS) != 0 {
		c.handleControl(now, f, seg)
		if c.mode == modePlain {
			return
		}
	}
	if seg.Has&wire.OptDSS != 0 {
		c.handleDSS(now, f, seg)
	}
	if seg.Flags&wire.SYN == 0 {
		if c.single && f.phase == phaseUp {
			c.placeAlone(now, f) // after the DATA_ACK
		}
		c.checkProof(now, f, seg)
	}
}

// handleControl acts on every option that is neither a handshake nor a DSS.
func (c *Conn) handleControl(now mono.Time, f *flow, seg *wire.Segment) {
	if seg.Has&wire.OptMPCapable != 0 && seg.Capable.HasData {
		c.handleCapableData(now, f, seg)
	}
	if seg.Has&wire.OptMPJoin != 0 && seg.Join.Form == wire.JoinACK && f.phase == phaseUp {
		// The peer repeats its third ACK until it sees the fourth.
		f.tcp.RequestAck()
	}
	if seg.Has&wire.OptAddAddr != 0 {
		c.handleAddAddr(now, f, &seg.AddAddr)
	}
	if seg.Has&wire.OptRemoveAddr != 0 {
		c.handleRemoveAddr(now, &seg.RemoveAddr)
	}
	if seg.Has&wire.OptMPPrio != 0 {
		c.peerSetBackup(f, seg.PrioBackup)
	}
	if seg.Has&wire.OptMPFail != 0 {
		c.handleFail(now, f, seg)
	}
	if seg.Has&wire.OptMPTCPRst != 0 {
		c.drop(reason.DropState) // it explains a RST, and this is none
	}
	if seg.Has&wire.OptFastClose != 0 {
		c.handleFastClose(now, seg)
	}
}

// collect takes what a subflow has to give after an input. Its events wait
// until its output, which comes before them, was polled.
func (c *Conn) collect(now mono.Time, f *flow) {
	if f.phase == phaseDead {
		return
	}
	c.flowAcked(f)
	c.awaitDataAck(now, f)
	c.coverPinned(now)
	c.watchIdle(now)
	var d subflow.Data
	for f.tcp.NextData(&d) {
		c.receive(f, &d)
	}
	c.flushHeld(now, f)
	if f.tcp.PeerClosed() {
		c.peerClosedFlow(now, f)
	}
	c.advance(now)
}

// flow returns the live subflow with an id, or nil.
func (c *Conn) flow(id int) *flow {
	for _, f := range c.flows {
		if f.id == id {
			return f
		}
	}
	return nil
}

func (c *Conn) drop(r reason.Drop) { c.stats.Drops.Count(r) }

// IsMPTCP reports whether the connection speaks MPTCP.
func (c *Conn) IsMPTCP() bool { return c.mode == modeMPTCP }

// Connected reports whether the first handshake is done, or data on a SYN was
// taken.
func (c *Conn) Connected() bool { return c.connected }

// Joinable reports whether further subflows may be opened now: also while one
// half of the connection is closed, not when both are.
func (c *Conn) Joinable() bool {
	return c.joinable && !c.over && c.ending == reason.CloseNone && !c.failing() && !c.Ended()
}

// Ended reports whether nothing but the ends of subflows is still to come: our
// stream has arrived, and the peer's too or nobody wants it.
func (c *Conn) Ended() bool { return c.snd.finAcked() && (c.rcv.eof() || c.userClosed) }

// Closed reports whether the connection is over.
func (c *Conn) Closed() bool { return c.over }

// Err says how the connection ended; CloseNone while it goes on.
func (c *Conn) Err() reason.Close { return c.err }

// PeerDeniesInitial reports whether the peer asked, by flag C, not to be joined
// at the address and port of the first subflow.
func (c *Conn) PeerDeniesInitial() bool { return c.denyInitial }

// Fallback says why the connection is plain TCP; FallbackNone if it is not.
func (c *Conn) Fallback() reason.Fallback { return c.fallback }

// Token returns the token by which a peer's MP_JOIN names this connection.
func (c *Conn) Token() key.Token { return c.localToken }
