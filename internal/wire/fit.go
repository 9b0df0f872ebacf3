package wire

// The rules of which options may share a segment. SACK and timestamps aside, an
// option shares only with those named beside it; where two that must not share
// meet, the one that comes first in the orders below stays.
//
//	option         may share with                why
//	MSS, WScale,   each other, timestamps,       SYN only (RFC 9293, 3.7.1; 7323, 2.2; 2018, 2)
//	SACKPermitted  FastOpen, MP_CAPABLE, MP_JOIN
//	FastOpen       as those, but no MP_JOIN      data on a SYN begins a connection only (RFC 8684, B.2)
//	Timestamps     everything                    RFC 7323, 3.2: on every segment once agreed
//	SACK           all but SYN options           RFC 2018, 3
//	MP_CAPABLE     TCP options                   takes the place of the DSS (RFC 8684, 3.1)
//	MP_JOIN        TCP options                   no data before the handshake is done (3.2)
//	DSS            signals, MP_FAIL              a DSS on a RST would be lost with it
//	MP_PRIO        DSS, the other signals        signals; a segment of their own is best (App. A)
//	REMOVE_ADDR    DSS, MP_PRIO                  beside ADD_ADDR, one id would mean two things
//	ADD_ADDR       DSS, MP_PRIO
//	MP_FAIL        DSS, MP_TCPRST                with a RST, or with the infinite mapping (3.7)
//	MP_FASTCLOSE   MP_TCPRST                     ends the connection (3.5)
//	MP_TCPRST      MP_FASTCLOSE, MP_FAIL         RST only (3.6)
//
// The largest cookie that fits beside all else is that of 14 bytes on a SYN
// with MP_CAPABLE and of 6 on the SYN/ACK, or of 16 and, without timestamps, 14
// (RFC 8684, B.1, which counts without padding, comes to 7 on a SYN/ACK; cookies
// have an even length).
const (
	synOptions = OptMSS | OptWScale | OptSACKPermitted | OptFastOpen
	signals    = OptMPPrio | OptRemoveAddr | OptAddAddr
)

// conflicts returns the options that must not stand beside opt.
func conflicts(opt OptionSet) OptionSet {
	switch opt {
	case OptMSS, OptWScale, OptSACKPermitted:
		return OptSACK | OptMPTCP&^(OptMPCapable|OptMPJoin)
	case OptFastOpen:
		return OptSACK | OptMPTCP&^OptMPCapable
	case OptSACK:
		return synOptions
	case OptMPCapable:
		return OptMPTCP &^ opt
	case OptMPJoin:
		return OptFastOpen | OptMPTCP&^opt
	case OptDSS:
		return synOptions | OptMPTCP&^(OptDSS|signals|OptMPFail)
	case OptMPPrio:
		return synOptions | OptMPTCP&^(OptDSS|signals)
	case OptRemoveAddr, OptAddAddr:
		return synOptions | OptMPTCP&^(OptDSS|OptMPPrio|opt)
	case OptMPFail:
		return synOptions | OptMPTCP&^(OptMPFail|OptDSS|OptMPTCPRst)
	case OptFastClose:
		return synOptions | OptMPTCP&^(OptFastClose|OptMPTCPRst)
	case OptMPTCPRst:
		return synOptions | OptMPTCP&^(OptMPTCPRst|OptFastClose|OptMPFail)
	}
	return 0
}

// optMapping stands for a DSS that has a mapping, in the orders below only.
const optMapping OptionSet = 1 << 31

// The orders in which options get room. Timestamps come first: they leave 28
// bytes, which is the largest DSS, and the largest SYN (MSS, window scale,
// SACK-permitted, MP_JOIN of a SYN/ACK) takes 36 with them. An IPv6 ADD_ADDR
// with a port, 32 bytes padded, fits only where no timestamps are agreed.
var (
	// With payload the mapping decides whether the peer can use the bytes, and
	// SACK blocks, cut down to what fits, keep the sender going; signals can
	// wait for a segment of their own.
	dataOrder = [...]OptionSet{
		OptTimestamps, OptMSS, OptWScale, OptSACKPermitted, OptMPCapable, OptMPJoin,
		OptDSS, OptMPFail, OptSACK, OptMPPrio, OptRemoveAddr, OptAddAddr,
		OptFastClose, OptMPTCPRst, OptFastOpen,
	}
	// Without payload the segment may exist for a signal's sake. A DATA_FIN or
	// an infinite mapping still comes before signals; a bare DATA_ACK after
	// them, since every later segment repeats it, and SACK takes the rest.
	ackOrder = [...]OptionSet{
		OptTimestamps, OptMSS, OptWScale, OptSACKPermitted, OptMPCapable, OptMPJoin,
		OptFastClose, OptMPTCPRst, OptMPFail, optMapping, OptMPPrio, OptRemoveAddr, OptAddAddr,
		OptDSS, OptSACK, OptFastOpen,
	}
)

// Fit takes away from o what cannot be sent in one segment, with or without
// payload, and returns what it took: options that must not share a segment
// with a more important one, that find no room in MaxOptions bytes, or whose
// fields say nothing that could be sent. SACK is shortened to the blocks that
// fit, first blocks first, and only counts as dropped when none does; all else
// stays whole or goes. Build applies the same rules by itself; call Fit to learn
// what was left out, as for an MP_CAPABLE, a mapping or a fast open cookie that
// payload depends on, or for an ADD_ADDR that has to be sent again.
func Fit(o *Options, payload bool) (dropped OptionSet) {
	p := o.fit(payload)
	dropped = o.Has &^ p.keep
	o.Has = p.keep
	o.NumSACK = p.sacks
	return dropped
}

// plan is what of some Options goes into a segment.
type plan struct {
	keep  OptionSet
	sacks uint8
}

// fit applies the rules above without touching o.
func (o *Options) fit(payload bool) plan {
	// What nearly every segment of an open connection has always fits.
	if o.Has&^(OptTimestamps|OptDSS) == 0 && (o.Has&OptDSS == 0 || o.DSS.size() != 0) {
		return plan{keep: o.Has}
	}
	order := ackOrder[:]
	if payload {
		order = dataOrder[:]
	}
	var p plan
	var barred OptionSet
	room := MaxOptions
	for _, opt := range order {
		if opt == optMapping {
			if o.DSS.Flags&DSSMap == 0 {
				continue
			}
			opt = OptDSS
		}
		if o.Has&opt == 0 || (p.keep|barred)&opt != 0 {
			continue
		}
		n := o.padded(opt)
		switch {
		case opt == OptSACK:
			blocks := min(o.sackBlocks(), (room-2-2)/lenSACKBlock)
			if blocks < 1 {
				continue
			}
			p.sacks = uint8(blocks)
			n = paddedSACK(blocks)
		case opt == OptSACKPermitted && p.keep&OptTimestamps != 0:
			n = 0 // takes the place of the timestamps' padding
		case n == 0:
			continue
		}
		if n > room {
			continue
		}
		room -= n
		p.keep |= opt
		barred |= conflicts(opt)
	}
	return p
}

// sackBlocks returns how many SACK blocks there are, at most as many as exist.
func (o *Options) sackBlocks() int { return min(int(o.NumSACK), len(o.SACK)) }

// paddedSACK returns the length of a SACK option with its padding.
func paddedSACK(blocks int) int { return 4 + lenSACKBlock*blocks }

// padded returns the length of one option of o with its padding, 0 when its
// fields say nothing that could be sent.
func (o *Options) padded(opt OptionSet) int {
	n := 0
	switch opt {
	case OptMSS:
		n = lenMSS
	case OptWScale:
		n = lenWScale
	case OptSACKPermitted:
		n = lenSACKPermitted
	case OptSACK:
		if b := o.sackBlocks(); b > 0 {
			n = paddedSACK(b)
		}
	case OptTimestamps:
		n = lenTimestamps
	case OptFastOpen:
		n = o.FastOpen.size()
	case OptMPCapable:
		n = o.Capable.size()
	case OptMPJoin:
		n = o.Join.size()
	case OptDSS:
		n = o.DSS.size()
	case OptAddAddr:
		n = o.AddAddr.size()
	case OptRemoveAddr:
		n = o.RemoveAddr.size()
	case OptMPPrio:
		n = lenPrio
	case OptMPFail:
		n = lenFail
	case OptFastClose:
		n = lenFastClose
	case OptMPTCPRst:
		n = lenTCPRst
	}
	return (n + 3) &^ 3
}
