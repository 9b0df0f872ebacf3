package subflow

import (
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/seq"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// reply is a RST to be sent.
type reply struct {
	kind replyKind
	at   seq.SSN // replyReset: its sequence number
}

type replyKind uint8

const (
	replyNone  replyKind = iota
	replyReset           // answers an ACK of something never sent
	replyAbort           // ends the connection
)

// Close sends FIN behind everything pushed. The peer may go on sending, but
// FIN-WAIT-2 ends after Config.FinWait2 without payload.
func (s *Subflow) Close(now mono.Time) {
	s.stir()
	s.snd.half = false
	s.finish(now)
	if s.state == StateFinWait2 {
		s.setFinWait2(now)
	}
}

// CloseWrite is Close for a connection that will go on receiving:
// FIN-WAIT-2 lasts until the peer's FIN, or a later Close.
func (s *Subflow) CloseWrite(now mono.Time) {
	s.stir()
	if s.snd.fin == 0 {
		s.snd.half = true
	}
	s.finish(now)
}

// finish queues our FIN, by the CLOSE call of RFC 9293, Section 3.10.4.
func (s *Subflow) finish(now mono.Time) {
	switch s.state {
	case StateSynSent:
		s.end(reason.CloseCommand)
	case StateSynReceived:
		s.snd.fin = s.snd.end // FIN-WAIT-1 follows ESTABLISHED
	case StateEstablished:
		s.snd.fin = s.snd.end
		s.state = StateFinWait1
	case StateCloseWait:
		s.snd.fin = s.snd.end
		s.state = StateLastAck
	}
	s.snd.blocked, s.snd.refused = false, false
	s.setPersist(now)
}

// FINAcked reports whether the peer acknowledged our FIN.
func (s *Subflow) FINAcked() bool { return s.snd.fin != 0 && s.snd.una > s.snd.fin }

// Abort enters CLOSED. If the peer's numbers are known, the next PollSegment
// gives a RST (RFC 9293, Section 3.10.5).
func (s *Subflow) Abort(_ mono.Time) {
	s.stir()
	switch {
	case s.state.over():
		return
	case s.state != StateSynSent:
		s.reply = reply{kind: replyAbort}
	}
	s.flush(reason.CloseLocalReset)
}

// flush enters CLOSED and drops what was received and not handed out: "all
// segment queues should be flushed".
func (s *Subflow) flush(why reason.Close) {
	r := &s.rcv
	if len(r.run.Views) > 0 && r.run.Owner != nil {
		r.run.Owner.DecRef()
	}
	r.run = Data{}
	if r.beyond != nil {
		r.beyond.q.Close()
		r.beyond = nil
	}
	s.end(why)
}

// resetFor answers a segment that acknowledges what was never sent, within
// limits: <SEQ=SEG.ACK><CTL=RST>.
func (s *Subflow) resetFor(now mono.Time, seg *wire.Segment) {
	if s.mayAnswer(now) {
		s.reply = reply{kind: replyReset, at: seg.Ack}
	}
}

// pollReset builds the RST that is due, if any.
func (s *Subflow) pollReset(now mono.Time, seg *wire.Segment) bool {
	switch s.reply.kind {
	case replyNone:
		return false
	case replyReset:
		seg.Src, seg.Dst = s.ends.Local, s.ends.Remote
		seg.Seq, seg.Flags = s.reply.at, wire.RST
	case replyAbort:
		s.putHeader(now, seg, s.snd.nxt, wire.RST|wire.ACK)
		seg.Wnd = 0
	}
	s.markable(seg)
	s.reply = reply{}
	return true
}

// setFinWait2 bounds FIN-WAIT-2, if it is to be bounded.
func (s *Subflow) setFinWait2(now mono.Time) {
	if !s.snd.half {
		s.timers.Set(timerFinWait2, now.Add(s.cfg.FinWait2))
	}
}

// restartFinWait2 gives a peer that still sends more time.
func (s *Subflow) restartFinWait2(now mono.Time, seg *wire.Segment) {
	if s.timers.At(timerFinWait2).Set() && seg.PayloadLen() > 0 {
		s.setFinWait2(now)
	}
}

// onFinWait2 gives up on the peer's FIN.
//
// Deviation: RFC 9293 lets FIN-WAIT-2 last for ever; a peer that forgot the
// connection would hold its memory here.
func (s *Subflow) onFinWait2() { s.flush(reason.CloseTimeout) }
