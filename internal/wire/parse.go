package wire

import (
	"bytes"

	"github.com/gomptcp/gomptcp/internal/reason"
)

// Option kinds (IANA, Transmission Control Protocol Parameters).
const (
	kindEnd           = 0
	kindNOP           = 1
	kindMSS           = 2
	kindWScale        = 3
	kindSACKPermitted = 4
	kindSACK          = 5
	kindTimestamps    = 8
	kindMPTCP         = 30
	kindFastOpen      = 34
)

// Option subtypes of kind 30 (RFC 8684, Section 7.2). Subtypes 9 to 14 are
// unassigned, 15 is for private use.
const (
	subCapable    = 0
	subJoin       = 1
	subDSS        = 2
	subAddAddr    = 3
	subRemoveAddr = 4
	subPrio       = 5
	subFail       = 6
	subFastClose  = 7
	subTCPRst     = 8
)

// subtypes maps the subtype field to the option; 0 is unknown.
var subtypes = [16]OptionSet{
	subCapable:    OptMPCapable,
	subJoin:       OptMPJoin,
	subDSS:        OptDSS,
	subAddAddr:    OptAddAddr,
	subRemoveAddr: OptRemoveAddr,
	subPrio:       OptMPPrio,
	subFail:       OptMPFail,
	subFastClose:  OptFastClose,
	subTCPRst:     OptMPTCPRst,
}

// Parse reads the TCP header with its options at the start of b into the
// Header and the Options of seg and leaves the rest of seg alone. It does not
// look at what follows the header. When it returns a reason, the segment is to
// be dropped and the fields are undefined.
//
// Options of unknown kind or subtype are skipped. A known option whose length
// does not fit is put into Bad and otherwise ignored. Of several copies of one
// option the first counts, even a bad one; the RFCs leave that open.
func Parse(b []byte, seg *Segment) reason.Drop {
	if len(b) < HeaderSize {
		return reason.DropShort
	}
	n := HeaderLen(b)
	if n < 0 {
		return reason.DropOffset
	}
	seg.Header.parse(b)
	return seg.Options.parse(b[HeaderSize:n])
}

// ParseNext is Parse for a segment that holds what Parse made of another header,
// before: options that are the same bytes are not read again.
func ParseNext(b, before []byte, seg *Segment) reason.Drop {
	n := HeaderLen(b)
	if n < 0 || n != HeaderLen(before) || !bytes.Equal(b[HeaderSize:n], before[HeaderSize:n]) {
		return Parse(b, seg)
	}
	seg.Header.parse(b)
	return reason.DropNone
}

// parse reads an option list.
func (o *Options) parse(b []byte) reason.Drop {
	o.Reset()
	for len(b) > 0 {
		switch b[0] {
		case kindEnd:
			return reason.DropNone
		case kindNOP:
			b = b[1:]
			continue
		}
		// RFC 9293, Section 3.1: "TCP implementations MUST be prepared to handle
		// an illegal option length (e.g., zero)" (MUST-7).
		if len(b) < 2 || b[1] < 2 || int(b[1]) > len(b) {
			return reason.DropOption
		}
		n := int(b[1])
		// RFC 9293, Section 3.1: "A TCP implementation MUST (MUST-6) ignore
		// without error any TCP Option it does not implement".
		if opt := identify(b[:n]); opt != 0 && (o.Has|o.Bad)&opt == 0 {
			if o.read(opt, b[:n]) {
				o.Has |= opt
			} else {
				o.Bad |= opt
			}
		}
		b = b[n:]
	}
	return reason.DropNone
}

// identify returns which option b is, 0 when it is unknown. b is one whole
// option of two bytes or more.
func identify(b []byte) OptionSet {
	switch b[0] {
	case kindMSS:
		return OptMSS
	case kindWScale:
		return OptWScale
	case kindSACKPermitted:
		return OptSACKPermitted
	case kindSACK:
		return OptSACK
	case kindTimestamps:
		return OptTimestamps
	case kindFastOpen:
		return OptFastOpen
	case kindMPTCP:
		if len(b) > 2 {
			return subtypes[b[2]>>4]
		}
	}
	return 0
}

// read fills in one option; it reports whether its length fits. A malformed
// option leaves its field alone.
func (o *Options) read(opt OptionSet, b []byte) bool {
	switch opt {
	case OptMSS:
		return o.parseMSS(b)
	case OptWScale:
		return o.parseWScale(b)
	case OptSACKPermitted:
		return len(b) == lenSACKPermitted
	case OptSACK:
		return o.parseSACK(b)
	case OptTimestamps:
		return o.parseTimestamps(b)
	case OptFastOpen:
		return o.FastOpen.parse(b)
	case OptMPCapable:
		return o.Capable.parse(b)
	case OptMPJoin:
		return o.Join.parse(b)
	case OptDSS:
		return o.DSS.parse(b)
	case OptAddAddr:
		return o.AddAddr.parse(b)
	case OptRemoveAddr:
		return o.RemoveAddr.parse(b)
	case OptMPPrio:
		return o.parsePrio(b)
	case OptMPFail:
		return o.parseFail(b)
	case OptFastClose:
		return o.parseFastClose(b)
	default:
		return o.TCPRst.parse(b)
	}
}
