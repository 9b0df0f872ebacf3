package wire

// maxMerged is the most payload of a merged run, so that the IP packet around
// it stays below 64 KiB with any header.
const maxMerged = 65535 - 40 - MaxHeader

// Merge appends packet b to the run a and reports whether it did; otherwise
// both are as before. It is the reverse of Split: what it merged comes out the
// same when cut again. So a grows only by packets of its own first payload
// size, a smaller one ends the run, and so do FIN and PSH.
//
// Merged are packets of one flow that follow each other in sequence and agree
// in acknowledgment, window, ECN and options, the DSS included: a mapping that
// is repeated on each packet becomes one, two mappings are never joined. CWR
// may stand on the first packet only. Payload held by an Owner is not merged,
// since a run could carry only one.
func Merge(a, b *Segment) bool {
	na, nb := a.PayloadLen(), b.PayloadLen()
	size := a.SegSize
	if size == 0 {
		size = na
	}
	switch {
	case na == 0 || nb == 0 || na+nb > maxMerged:
		return false
	case na%size != 0 || nb > size && b.SegSize != size:
		return false
	case a.Src != b.Src || a.Dst != b.Dst || a.ECN != b.ECN:
		return false
	case a.Seq.Add(na) != b.Seq || a.Ack != b.Ack || a.Wnd != b.Wnd:
		return false
	case a.Flags&(SYN|FIN|RST|PSH|URG) != 0 || a.Flags&^CWR != b.Flags&^(FIN|PSH):
		return false
	case a.Owner != nil || b.Owner != nil:
		return false
	case (len(a.Blocks) == len(a.Payload)) != (len(b.Blocks) == len(b.Payload)):
		return false
	case a.Bad|b.Bad != 0 || !a.Options.Equal(&b.Options):
		return false
	}
	a.SegSize = size
	a.Flags |= b.Flags & (FIN | PSH)
	a.Payload = append(a.Payload, b.Payload...)
	a.Blocks = append(a.Blocks, b.Blocks...)
	return true
}
