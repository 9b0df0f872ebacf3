package spec

import (
	"bytes"
	"io"
	"time"

	"github.com/gomptcp/gomptcp/internal/key"
	"github.com/gomptcp/gomptcp/internal/seq"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// Dialog is the peer's end of a connection, with the application at the other.
// Both streams are made of pattern bytes, so that either side knows what it
// has to get.
type Dialog struct {
	s   *Script
	app App

	localKey, remoteKey key.Key
	checksum            bool // agreed
	short               bool // send DSNs and DATA_ACKs of 4 bytes

	sndNxt seq.DSN // next DSN of the peer
	una    seq.DSN // highest DATA_ACK of the target
	rcvNxt seq.DSN // DATA_ACK of the peer
	fallen bool    // no options any more
	keyed  bool    // the target has shown that it knows both keys

	flows []*Flow
	got   []byte  // the target's stream, as far as it is whole
	held  []chunk // beyond a hole
	finAt seq.DSN // DSN of the target's DATA_FIN; 0 = not seen
	fin   bool    // everything including the DATA_FIN came

	sent, read, wrote int // bytes of the peer's stream sent and read, of the target's written
}

// chunk is data of the target that came early.
type chunk struct {
	dsn seq.DSN
	b   []byte
}

// pattern returns n bytes of a stream from an offset on.
func pattern(from, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		o := from + i
		b[i] = byte(o*31 + o>>8*7)
	}
	return b
}

// first is the flow with MP_CAPABLE.
func (d *Dialog) first() *Flow { return d.flows[0] }

// idsn is the initial DSN of the peer.
func (d *Dialog) idsn() seq.DSN { return d.localKey.IDSN() }

// learnKey takes the target's key.
func (d *Dialog) learnKey(k key.Key) {
	d.remoteKey = k
	d.rcvNxt = k.IDSN().Add(1)
}

// dsnOf returns the DSN of a mapping with all its 64 bits.
func (d *Dialog) dsnOf(in *In) seq.DSN {
	if in.DSS.Flags&wire.DSSDSN8 != 0 {
		return seq.DSN(in.DSS.DSN)
	}
	return seq.Expand(uint32(in.DSS.DSN), d.rcvNxt)
}

// ackOf returns a DATA_ACK with all its 64 bits.
func (d *Dialog) ackOf(in *In) seq.DSN {
	if in.DSS.Flags&wire.DSSAck8 != 0 {
		return seq.DSN(in.DSS.Ack)
	}
	return seq.Expand(uint32(in.DSS.Ack), d.sndNxt)
}

// dataAcks matches a segment whose DATA_ACK is n.
func (d *Dialog) dataAcks(n seq.DSN) Match {
	return func(in *In) bool { return hasDataAck(in) && d.ackOf(in) == n }
}

// declare takes a mapping. It reports whether it is a lone DATA_FIN.
func (d *Dialog) declare(f *Flow, p piece) bool {
	if p.n > 0 {
		f.pieces = append(f.pieces, p)
	}
	if !p.fin {
		return false
	}
	d.finAt = p.dsn.Add(p.n)
	d.finish()
	return p.n == 0
}

// finish takes the DATA_FIN if all before it came.
func (d *Dialog) finish() {
	if d.finAt != 0 && !d.fin && d.rcvNxt == d.finAt {
		d.fin = true
		d.rcvNxt = d.rcvNxt.Add(1)
	}
}

// deliver takes payload of a flow at a relative sequence number.
func (d *Dialog) deliver(f *Flow, rel uint32, b []byte) {
	for len(b) > 0 {
		if d.fallen {
			d.got = append(d.got, b...)
			return
		}
		p, off, ok := f.pieceAt(rel)
		if !ok {
			d.s.Failf("the target sent a byte at relative SSN %d without a mapping", rel)
		}
		n := min(len(b), p.n-off)
		d.held = append(d.held, chunk{p.dsn.Add(off), b[:n]})
		b, rel = b[n:], rel+uint32(n)
	}
	for again := true; again; {
		again = false
		for _, c := range d.held {
			skip := d.rcvNxt.Diff(c.dsn)
			if skip >= 0 && skip < int64(len(c.b)) {
				d.got = append(d.got, c.b[skip:]...)
				d.rcvNxt = c.dsn.Add(len(c.b))
				again = true
			}
		}
	}
	d.finish()
}

// pieceAt returns the mapping of a relative sequence number.
func (f *Flow) pieceAt(rel uint32) (p piece, off int, ok bool) {
	for _, p := range f.pieces {
		if o := int(int32(rel - p.ssn)); o >= 0 && o < p.n {
			return p, o, true
		}
	}
	return piece{}, 0, false
}

// dataAck adds a DATA_ACK to a segment.
func (f *Flow) dataAck(o *Out) {
	if f.d == nil || f.noDSS || f.d.fallen || o.Has&wire.OptMPCapable != 0 {
		return
	}
	o.Has |= wire.OptDSS
	o.DSS.Flags |= wire.DSSAck
	o.DSS.Ack = uint64(f.d.rcvNxt)
	if !f.d.short {
		o.DSS.Flags |= wire.DSSAck8
	}
}

// mapped returns a segment of payload with a mapping at dsn, of a length in
// the option that the payload has; without one on plain TCP. The peer's counts
// stay as they are.
func (f *Flow) mapped(p []byte, dsn seq.DSN) *Out {
	o := f.out(wire.ACK | wire.PSH)
	if len(p) > 0 {
		o.Payload = append(o.Payload, p)
	}
	if !f.d.fallen {
		f.dataAck(o)
		f.mapTo(o, dsn, uint32(f.sndNxt-f.iss)-f.early, p)
	}
	return o
}

// mapTo adds a mapping for payload p to a segment.
func (f *Flow) mapTo(o *Out, dsn seq.DSN, rel uint32, p []byte) {
	o.Has |= wire.OptDSS
	o.DSS.Flags |= wire.DSSMap
	o.DSS.DSN, o.DSS.SSN, o.DSS.Len = uint64(dsn), rel, uint16(len(p))
	if !f.d.short {
		o.DSS.Flags |= wire.DSSDSN8
	}
	f.seal(o, p)
}

// seal fills in the checksum of a mapping if checksums are agreed.
func (f *Flow) seal(o *Out, p []byte) {
	if f.d.checksum {
		o.DSS.HasChecksum = true
		o.DSS.Checksum = wire.DSSChecksum(wire.Sum(p, 0), o.DSS.DSN, o.DSS.SSN, o.DSS.Len)
	}
}

// take returns the next n bytes of the peer's stream and their DSN.
func (d *Dialog) take(n int) ([]byte, seq.DSN) {
	p, dsn := pattern(d.sent, n), d.sndNxt
	d.sent += n
	d.sndNxt = dsn.Add(n)
	return p, dsn
}

// data sends the next n bytes of the stream, in segments of at most 1000, and
// as RFC 8684, Section 3.1 wants the first ones: with MP_CAPABLE.
func (f *Flow) data(n int) {
	for n > 0 {
		m := min(n, 1000)
		p, dsn := f.d.take(m)
		o := f.mapped(p, dsn)
		switch {
		case f.d.fallen || f.noDSS:
			o.Has &^= wire.OptDSS
		case !f.d.keyed && f == f.d.first() && dsn == f.d.idsn().Add(1):
			o.Has = o.Has&^wire.OptDSS | wire.OptMPCapable
			o.Capable = f.capable(2)
			o.Capable.HasData, o.Capable.DataLen = true, uint16(m)
			o.Capable.HasChecksum, o.Capable.Checksum = o.DSS.HasChecksum, o.DSS.Checksum
		}
		f.send(o)
		n -= m
	}
}

// dataFin sends a lone DATA_FIN.
//
// RFC 8684, Section 3.3.3: "the DSS MUST be [...] a Subflow Sequence Number of
// 0 and a Data-Level Length of 1".
func (f *Flow) dataFin() {
	o := f.out(wire.ACK)
	f.dataAck(o)
	f.mapTo(o, f.d.sndNxt, 0, nil)
	o.DSS.Flags |= wire.DSSFin
	o.DSS.Len = 1
	f.seal(o, nil)
	f.d.sndNxt = f.d.sndNxt.Add(1)
	f.send(o)
}

// wantRead checks that the application gets the next n bytes of the peer's
// stream.
func (d *Dialog) wantRead(why string, n int) {
	got, err := d.app.Read(n, soon)
	d.s.Check(len(got) == n && (err == nil || err == io.EOF), "%s: the application read %d of %d bytes (%v)%s",
		why, len(got), n, err, d.s.lastWords())
	d.s.Check(bytes.Equal(got, pattern(d.read, n)), "%s: the application read wrong bytes", why)
	d.read += n
}

// noRead checks that the application gets nothing for a while.
func (d *Dialog) noRead(why string) {
	got, err := d.app.Read(1, quietly)
	d.s.Check(len(got) == 0 && err == nil, "%s: the application read %d bytes (%v)", why, len(got), err)
}

// wantEOF checks that the application sees the end of the peer's stream.
func (d *Dialog) wantEOF(why string) {
	got, err := d.app.Read(1, soon)
	d.s.Check(len(got) == 0 && err == io.EOF, "%s: the application read %d bytes and %v instead of the end", why, len(got), err)
}

// wantBroken checks that the application learns that the connection broke.
func (d *Dialog) wantBroken(why string) {
	_, err := d.app.Read(1, soon)
	d.s.Check(err == ErrReset, "%s: the application read %v, want a reset", why, err)
}

// write lets the application write the next n bytes of its stream.
func (d *Dialog) write(n int) {
	d.s.must(d.app.Write(pattern(d.wrote, n)), "write")
	d.wrote += n
}

// wantAll waits until everything that the application wrote has come.
func (d *Dialog) wantAll(why string, within time.Duration) {
	for end := d.s.Now().Add(within); len(d.got) < d.wrote; {
		if !d.s.pull(end) {
			d.s.Failf("%s: %d of %d bytes came within %v%s", why, len(d.got), d.wrote, within, d.s.lastWords())
		}
	}
	d.s.Check(bytes.Equal(d.got, pattern(0, d.wrote)), "%s: wrong bytes came", why)
}

// wantDataAcked waits until the target has DATA_ACKed everything sent.
func (d *Dialog) wantDataAcked(why string) {
	for end := d.s.Now().Add(soon); d.una != d.sndNxt; {
		if !d.s.pull(end) {
			d.s.Failf("%s: DATA_ACK stays at %d, want %d%s", why, d.una.Diff(d.idsn()), d.sndNxt.Diff(d.idsn()), d.s.lastWords())
		}
	}
}

// warm exchanges ten bytes each way, after which both ends know that DSS
// options pass and joins may begin.
func (d *Dialog) warm() *Dialog {
	d.first().data(10)
	d.wantRead("first data", 10)
	d.wantDataAcked("first data")
	d.keyed = true
	d.write(10)
	d.wantAll("the application's first data", soon)
	d.first().ack()
	d.s.Wait(quietly / 10)
	d.first().forget()
	return d
}
