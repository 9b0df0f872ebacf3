package subflow

import (
	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// FastOpen is a side's part in TCP Fast Open (RFC 7413). The zero value takes
// none: cookies that come are ignored.
type FastOpen struct {
	// Send puts Cookie on the first SYN, or SYN/ACK, if it finds room. On a SYN
	// an empty one asks for a cookie, and with another the connection's first
	// bytes may go along (OfferSYNData). On a SYN/ACK the cookie is cut down to
	// what there is room for.
	Send   bool
	Cookie wire.FastOpen
	// MSS is, with a cookie on a SYN, the peer's as it once said; 0 = not known.
	MSS int
	// Take is that the SYN brought a good cookie: its data is taken, and data
	// may be sent before the third ACK.
	Take bool
}

// FastOpened says what became of a fast open.
type FastOpened struct {
	Asked  bool // our SYN had the option, perhaps one among several
	Cookie bool // and a cookie in it
	Sent   int  // bytes on our SYN
	Acked  int  // of these, acknowledged along with it
	Again  bool // the SYN had to be sent again, which it is without option and data
	Taken  int  // bytes taken from the peer's SYN

	Given wire.FastOpen // cookie that the SYN/ACK brought; Len 0 = none
	MSS   int           // that the SYN/ACK named; 0 = none
}

// fastOpen is the state of a fast open.
type fastOpen struct {
	cfg     FastOpen
	offered int // OfferSYNData
	done    FastOpened
}

// The largest payload of a SYN, whatever the peer said.
//
// RFC 7413, Section 4.1.3: "the client MAY limit the cached MSS to 1460 bytes
// for IPv4 or 1440 for IPv6", for "the unusually large SYN may trigger IP
// fragmentation and may confuse firewalls or middleboxes".
const (
	mostSYN4 = 1460
	mostSYN6 = 1440
)

// FastOpened returns what became of the fast open so far.
func (s *Subflow) FastOpened() FastOpened {
	if s.fast == nil {
		return FastOpened{}
	}
	return s.fast.done
}

// OfferSYNData tells how many bytes the connection has that may go along with
// the SYN, from the first one on. The Range of the SYN says how many do; they
// count as never sent as far as the SYN/ACK does not acknowledge them.
func (s *Subflow) OfferSYNData(n int) {
	s.stir()
	if s.fast != nil {
		s.fast.offered = n
	}
}

// putFastOpen adds the fast open option to a SYN or SYN/ACK that has its other
// options, and returns how many bytes of payload go along.
//
// RFC 7413, Section 4.2.2: "when the SYN timer fires, the client SHOULD
// retransmit a SYN packet without data and Fast Open options", and "If the
// SYN-ACK timer fires, the server SHOULD retransmit a SYN-ACK segment with
// neither data nor Fast Open options for compatibility reasons."
func (s *Subflow) putFastOpen(seg *wire.Segment, answer bool) int {
	if s.fast == nil {
		return 0
	}
	fo, again := &s.fast.cfg, s.snd.nxt != 0
	s.fast.done.Again = again
	if !fo.Send || again {
		return 0
	}
	room := maxOptionsLen - int(s.room.SYN)
	seg.FastOpen = fo.Cookie
	if answer {
		// RFC 8684, Appendix B.1: "it is up to the listener to avoid this
		// problem by using a shorter cookie."
		most := (room-seg.Options.Size())&^3 - 2
		seg.FastOpen.Len = uint8(max(min(int(fo.Cookie.Len), most), 0))
		if seg.FastOpen.Len < leastCookie {
			return 0
		}
	}
	seg.Has |= wire.OptFastOpen
	used := seg.Options.Size() + int(s.room.SYN)
	if used > maxOptionsLen {
		// RFC 7413, Section 4.2.2: "If the SYN packet does not have enough
		// option space for the Fast Open option, abort TFO and fall back to the
		// regular 3WHS."
		seg.Has &^= wire.OptFastOpen
		return 0
	}
	if answer {
		return 0
	}
	s.fast.done.Asked, s.fast.done.Cookie = true, fo.Cookie.Len > 0
	if fo.Cookie.Len == 0 {
		return 0
	}
	n := s.synPayload(used)
	s.fast.done.Sent = n
	s.count.bytesSent += uint64(n)
	return n
}

// leastCookie is the length of the shortest cookie (RFC 7413, Section 4.1.1).
const leastCookie = 4

// synPayload returns how many bytes go along with a SYN that has so many bytes
// of options.
//
// RFC 7413, Section 4.2.2: "Include any data up to the cached server MSS or
// default 536 bytes."
func (s *Subflow) synPayload(options int) int {
	most := orDefault(s.fast.cfg.MSS, s.snd.peerMSS)
	if s.ends.Remote.Addr().Unmap().Is4() {
		most = min(most, mostSYN4)
	} else {
		most = min(most, mostSYN6)
	}
	return max(min(s.fast.offered, min(most, s.snd.mtu-headerLen)-options), 0)
}

// takeSYNAck notes how far the peer has acknowledged our SYN, and what of its
// data. The rest was never sent, as far as the connection is concerned: nothing
// keeps it here.
func (s *Subflow) takeSYNAck(una relSSN) {
	s.snd.una, s.snd.nxt, s.snd.end = una, una, una
	if s.snd.fin != 0 {
		s.snd.fin = una
	}
	if s.fast != nil {
		s.fast.done.Acked = int(una - 1)
	}
	s.count.bytesAcked += uint64(una - 1)
}

// learnCookie takes what a SYN/ACK says for later.
func (s *Subflow) learnCookie(seg *wire.Segment) {
	if s.fast == nil {
		return
	}
	if seg.Has&wire.OptMSS != 0 {
		s.fast.done.MSS = int(seg.MSS)
	}
	if s.fast.done.Asked && seg.Has&wire.OptFastOpen != 0 {
		s.fast.done.Given = seg.FastOpen
	}
}

// takeSYNData takes the payload of the SYN, if its cookie was good.
//
// RFC 7413, Section 4.2.2: "Buffer the data and notify the application."
func (s *Subflow) takeSYNData(syn *wire.Segment) {
	if s.fast == nil || !s.fast.cfg.Take {
		return
	}
	s.early = true
	if n := syn.PayloadLen(); n > 0 {
		s.noteSize(n)
		s.store(syn, 1, min(relSSN(1+n), s.rcv.edge))
	}
	s.fast.done.Taken = int(s.rcv.nxt - 1)
}

// pollEarly builds a segment of new data to be sent before the third ACK. Until
// that has come nothing is sent again but the SYN/ACK.
func (s *Subflow) pollEarly(now mono.Time, seg *wire.Segment) (Range, bool) {
	if !s.early || s.state != StateSynReceived || s.snd.syn != synOut {
		return Range{}, false
	}
	if n := s.nextNew(now); n > 0 {
		return s.sendNew(now, seg, n, s.snd.mss), true
	}
	return Range{}, false
}

// watchEarly has data that was sent before the third ACK sent again, should it
// have been lost.
func (s *Subflow) watchEarly(now mono.Time) {
	if s.queue.total > 0 {
		s.startRexmit(now)
		s.armProbe(now)
	}
}
