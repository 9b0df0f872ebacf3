package mpconn

import (
	"net/netip"
	"time"

	"github.com/gomptcp/gomptcp/cc"
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/subflow"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// phase is how far a subflow's MPTCP handshake has come.
type phase uint8

const (
	phaseOpening        phase = iota // TCP handshake under way
	phasePreEstablished              // joiner that waits for the fourth ACK
	phaseUp                          // may carry data
	phaseDead                        // gone; only a pointer to it may be left
)

// flow is a subflow as the connection sees it.
type flow struct {
	id   int
	tcp  *subflow.Subflow
	ctl  cc.Controller
	join *joinState // nil on the first subflow

	phase             phase
	localID, remoteID uint8
	backupLocal       bool   // we asked the peer not to send here
	backupRemote      bool   // the peer asked us not to send here
	early             bool   // data on its SYN was taken: may send in phaseOpening
	syns              uint16 // SYNs sent
	tsOffset          uint32 // of our timestamps

	upAt uint64 // first offset not DATA_ACKed when it came up
	lead lead
	// keysSent: the third ACK, or data in its place, was sent with both keys.
	keysSent bool
	stale    bool  // a retransmission timeout is unanswered
	leaving  bool  // being closed alone: carries no new data
	bareFIN  bool  // the peer's FIN came without an MPTCP option
	bare     int32 // and so did so many segments in a row
	// dataAcked: data of ours was acknowledged here with a DATA_ACK, so that
	// later ACKs may go without.
	dataAcked bool
	riding    bool        // signals are on its payload
	reset     wire.TCPRst // what our RST says

	peerReset     reason.Reset // what the peer's RST said
	peerTransient bool
	failed        reason.Close // why we ended it, if we did
	signals       int32        // ACKs in a row that were sent for an option's sake only
	told          uint64       // right edge of the window that was last told here
	out           mappings     // sent and not acknowledged on the subflow
	in            mappings     // received and not used up
	held          *pieces      // payload that waits for its mapping, or the rest of it; nil if none does
	got           uint64       // subflow offset behind the last byte taken
	quiet         mono.Time    // when the next ACK for an option's sake is allowed, after too many
	// [run, runEnd) is the last range of data offsets that was bound to this
	// flow without a break.
	run, runEnd uint64
	echoRTT     time.Duration // least round trip that timestamps showed in this round; 0 = none
	reinjected  uint64        // bytes sent here that another flow carried first
	shown       uint64        // the subflow's moves that the scheduler's view has
	offered     int           // the window that the subflow was told last

	*trouble // read it as it is, and change that of inTrouble
}

// trouble is the state of what rarely happens to a flow.
type trouble struct {
	infinite infinite // our infinite mapping, after a fallback
	// infiniteDelta is, after a fallback, data offset minus subflow offset of
	// what comes.
	infiniteDelta uint64
	verifiedTo    uint64 // subflow offset up to which checksums held
	fail          failure
	probe         probe
	silence       silence
	stuck         stuck
	prio          signal // the MP_PRIO we have to say
}

// noTrouble is that of flows to which nothing has happened. Nobody changes it.
var noTrouble trouble

// inTrouble returns the flow's trouble, to be changed.
func (f *flow) inTrouble() *trouble {
	if f.trouble == &noTrouble {
		f.trouble = &trouble{}
	}
	return f.trouble
}

type flowArgs struct {
	local, remote netip.AddrPort
	remoteID      uint8
	backup        bool
	join          *joinState
	localID       uint8
}

// addFlow makes a flow without its TCP machine.
func (c *Conn) addFlow(a flowArgs) *flow {
	f := &flow{
		id:          c.nextID,
		trouble:     &noTrouble,
		join:        a.join,
		remoteID:    a.remoteID,
		localID:     a.localID,
		backupLocal: a.backup || c.cfg.LastResort != nil && c.cfg.LastResort(a.local.Addr()),
	}
	if a.join == nil && f.backupLocal {
		// MP_CAPABLE, unlike MP_JOIN, has no flag for it.
		f.inTrouble().prio.start()
	}
	c.nextID++
	mss := c.pathMSS(a.local.Addr(), a.remote.Addr())
	f.ctl = c.group.Add(cc.Params{MSS: mss, InitialWindow: float64(c.cfg.Subflow.InitialWindow * mss), InitialSsthresh: float64(c.cfg.Subflow.InitialSsthresh)})
	c.flows = append(c.flows, f)
	if a.join != nil {
		a.join.ends = subflow.Ends{Local: a.local, Remote: a.remote}
	}
	return f
}

// pathMSS estimates the payload of a full segment before the handshake.
func (c *Conn) pathMSS(local, remote netip.Addr) int {
	mtu, _ := c.cfg.Path(local, remote)
	return max(mtu-20-12-roomData, 100)
}

// flowConfig returns what a subflow is made from.
func (c *Conn) flowConfig(now mono.Time, f *flow) subflow.Config {
	cfg := subflow.Config{Ends: &c.ends, Knobs: c.knobs}
	if f.join != nil {
		cfg.Ends = &f.join.ends
	}
	cfg.ISS, cfg.TSOffset = c.cfg.ISS(now, cfg.Local, cfg.Remote)
	f.tsOffset = cfg.TSOffset
	cfg.MTU, cfg.SegmentMax = c.cfg.Path(cfg.Local.Addr(), cfg.Remote.Addr())
	cfg.Room = c.roomFor(f)
	if u, ok := c.group.(cc.ECNUser); ok {
		cfg.Marks = u.ECN()
	}
	return cfg
}

// firstConfig returns what the first subflow is made from.
func (c *Conn) firstConfig(now mono.Time, f *flow, first *Config) subflow.Config {
	cfg := c.flowConfig(now, f)
	if first.ChangeISS != nil {
		cfg.ISS = first.ChangeISS(cfg.ISS)
	}
	cfg.FastOpen = first.FastOpen
	return cfg
}

// usable reports whether a flow may carry new data.
func (f *flow) usable() bool {
	return (f.phase == phaseUp || f.phase == phaseOpening && f.early) && !f.leaving && f.tcp.CanSend()
}

// live returns the number of flows that are up.
func (c *Conn) live() int {
	n := 0
	for _, f := range c.flows {
		if f.phase == phaseUp {
			n++
		}
	}
	return n
}

// flowEvent acts on an event of a subflow's TCP machine.
func (c *Conn) flowEvent(now mono.Time, f *flow, e subflow.Event) {
	switch e.Kind {
	case subflow.EventEstablished:
		if c.mode == modePlain && f.phase == phaseOpening {
			c.flowUp(now, f)
		}
	case subflow.EventTimeout:
		c.flowTimeout(now, f)
	case subflow.EventRecovered:
		if f.stale {
			c.oddity().Recovered++
		}
		f.stale = false
		if f.silence != (silence{}) {
			f.silence = silence{}
		}
	case subflow.EventTimeWait:
		c.removeFlow(now, f, reason.CloseDone, e.TimeWait)
	case subflow.EventClosed:
		why := e.Close
		if f.failed != reason.CloseNone {
			why = f.failed
		}
		c.removeFlow(now, f, why, nil)
	}
}

// flowUp lets a flow carry data.
func (c *Conn) flowUp(now mono.Time, f *flow) {
	f.phase = phaseUp
	c.added = c.added || f.join != nil
	f.tcp.SetRoom(c.roomFor(f))
	c.synDataAcked(now, f)
	c.snd.idle = false
	if !c.connected {
		c.connected = true
		c.emit(pending{kind: EventConnected})
	}
	c.emit(pending{kind: EventSubflowUp, f: f})
	f.upAt = c.snd.una
	if !c.awaitsDataAck() {
		// Otherwise only a DATA_ACK shows that more than handshakes pass.
		c.timers.Stop(timerOrphan)
	}
	if c.snd.closed && c.mode == modePlain {
		c.advance(now)
	}
}

// removeFlow forgets a flow; what it still owed goes to the others.
func (c *Conn) removeFlow(now mono.Time, f *flow, why reason.Close, tw *subflow.TimeWait) {
	if f.phase == phaseDead {
		return
	}
	c.remember(f, why)
	if f.id == 0 {
		o := f.tcp.FastOpened()
		c.opened = &o
	}
	wasUp := f.phase == phaseUp
	useless := wasUp && why != reason.CloseCommand && c.cfg.OrphanTimeout >= 0 &&
		c.awaitsDataAck() && (f.upAt == c.snd.una || !c.otherUsable(f))
	f.phase = phaseDead
	c.releaseMappings(f)
	if wasUp {
		c.snd.lostTo, c.stopped = c.snd.nxt, 0
	}
	for i := range f.held.all() {
		f.held.all()[i].release()
	}
	f.held = nil
	c.group.Remove(f.ctl)
	for i, g := range c.flows {
		if g == f {
			c.flows = append(c.flows[:i], c.flows[i+1:]...)
			break
		}
	}
	if c.rcv.lastOn == f {
		c.rcv.lastOn = nil
	}
	c.emit(pending{kind: EventSubflowLost, f: f, close: why, reset: f.peerReset, transient: f.peerTransient})
	if tw != nil {
		c.emit(pending{kind: EventTimeWait, f: f, timeWait: tw})
	}
	c.snd.idle = false
	switch {
	case len(c.flows) == 0:
		c.lastFlowGone(now, f, why)
	case useless || wasUp && c.live() == 0:
		// Joins that are under way may all fail, and those that come up may
		// bring no data across, as this one.
		c.startOrphan(now, why)
	}
}

// abortFlow ends one flow with a RST that gives a reason.
func (c *Conn) abortFlow(now mono.Time, f *flow, why reason.Close, code reason.Reset) {
	f.failed = why
	f.reset = wire.TCPRst{Reason: code, Transient: transient(code)}
	f.tcp.Abort(now)
}

// transient reports whether what made us reset a subflow may pass, so that the
// peer may try the path again.
func transient(code reason.Reset) bool {
	return code == reason.ResetResources || code == reason.ResetOutstanding || code == reason.ResetPerformance
}
