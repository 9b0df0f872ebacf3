package wire

import "math/bits"

// Build writes the TCP header and the options of seg into b, with a zero
// checksum field, and returns their length, a multiple of four. It writes what
// Fit would keep, in this order, each option padded to four bytes with NOPs:
//
//	MSS; SACK-permitted and timestamps (together, or NOP NOP timestamps, or
//	NOP NOP SACK-permitted); NOP window scale; NOP NOP SACK; fast open; MPTCP
//	options by subtype
//
// Timestamps thus stand where fast paths look for them, and MPTCP comes last
// as in Linux. The payload of seg only matters for what Fit keeps.
func Build(b *[MaxHeader]byte, seg *Segment) int {
	payload := false
	for _, v := range seg.Payload {
		if len(v) > 0 {
			payload = true
			break
		}
	}
	n := len(seg.Options.appendTo(b[:HeaderSize], seg.Options.fit(payload)))
	seg.Header.put(b, seg.Src.Port(), seg.Dst.Port(), n)
	return n
}

// Size returns the length in bytes, padding included, that the options of o
// would take if all were written. It is more than MaxOptions for what Fit
// would have to cut.
func (o *Options) Size() int {
	n := 0
	for has := uint32(o.Has); has != 0; has &= has - 1 {
		n += o.padded(OptionSet(1) << bits.TrailingZeros32(has))
	}
	if o.Has&(OptTimestamps|OptSACKPermitted) == OptTimestamps|OptSACKPermitted {
		n -= 4 // SACK-permitted takes the place of the timestamps' padding
	}
	return n
}

// appendTo appends the options of a plan. The plan's options fit their room,
// so that append never leaves the caller's array.
func (o *Options) appendTo(b []byte, p plan) []byte {
	if p.keep&OptMSS != 0 {
		b = appendMSS(b, o.MSS)
	}
	if p.keep&(OptTimestamps|OptSACKPermitted) != 0 {
		if p.keep&OptSACKPermitted != 0 {
			if p.keep&OptTimestamps == 0 {
				b = append(b, kindNOP, kindNOP)
			}
			b = append(b, kindSACKPermitted, lenSACKPermitted)
		} else {
			b = append(b, kindNOP, kindNOP)
		}
		if p.keep&OptTimestamps != 0 {
			b = appendTimestamps(b, o.TSVal, o.TSEcr)
		}
	}
	if p.keep&OptWScale != 0 {
		b = appendWScale(b, o.WScale)
	}
	if p.keep&OptSACK != 0 {
		b = appendSACK(b, o.SACK[:p.sacks])
	}
	if p.keep&OptFastOpen != 0 {
		b = pad(o.FastOpen.appendTo(b))
	}
	if p.keep&OptMPTCP != 0 {
		b = o.appendMPTCP(b, p.keep)
	}
	return b
}

// appendMPTCP appends the options of kind 30 in keep.
func (o *Options) appendMPTCP(b []byte, keep OptionSet) []byte {
	if keep&OptMPCapable != 0 {
		b = pad(o.Capable.appendTo(b))
	}
	if keep&OptMPJoin != 0 {
		b = o.Join.appendTo(b)
	}
	if keep&OptDSS != 0 {
		b = pad(o.DSS.appendTo(b))
	}
	if keep&OptAddAddr != 0 {
		b = pad(o.AddAddr.appendTo(b))
	}
	if keep&OptRemoveAddr != 0 {
		b = pad(o.RemoveAddr.appendTo(b))
	}
	if keep&OptMPPrio != 0 {
		b = pad(appendPrio(b, o.PrioBackup))
	}
	if keep&OptMPFail != 0 {
		b = appendFail(b, o.FailDSN)
	}
	if keep&OptFastClose != 0 {
		b = appendFastClose(b, o.FastClose)
	}
	if keep&OptMPTCPRst != 0 {
		b = o.TCPRst.appendTo(b)
	}
	return b
}

// pad fills up to a multiple of four bytes; b starts at one.
func pad(b []byte) []byte {
	for len(b)%4 != 0 {
		b = append(b, kindNOP)
	}
	return b
}
