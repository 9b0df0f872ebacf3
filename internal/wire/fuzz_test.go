package wire_test

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/internal/seq"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// FuzzParse reads any bytes. What could be read is built and read again, which
// must give the same options and, from then on, the same bytes.
func FuzzParse(f *testing.F) {
	for _, v := range vectors(f) {
		f.Add(header(v.options))
	}
	f.Add(header(unhex("1e000000")))
	f.Add(header(unhex("1e082001 00000001 1e0320 fd04ffff 0204")))
	f.Fuzz(func(t *testing.T, b []byte) {
		var first wire.Segment
		drop := wire.Parse(b, &first)
		_ = first.String()
		if n := wire.HeaderLen(b); (n < 0) != (drop == reason.DropShort || drop == reason.DropOffset) {
			t.Fatalf("header length %d, drop %v", n, drop)
		}
		if drop != reason.DropNone {
			return
		}
		if first.Has&first.Bad != 0 {
			t.Fatalf("both good and bad: %v", first.Has&first.Bad)
		}
		checkFixpoint(t, &first)
	})
}

// checkFixpoint builds seg, reads it back and compares with what Fit keeps.
func checkFixpoint(t *testing.T, seg *wire.Segment) {
	var b1, b2 [wire.MaxHeader]byte
	n1 := wire.Build(&b1, seg)
	kept := seg.Options
	wire.Fit(&kept, seg.PayloadLen() > 0)
	kept.Bad = 0
	var again wire.Segment
	if drop := wire.Parse(b1[:n1], &again); drop != reason.DropNone {
		t.Fatalf("reparse: %v", drop)
	}
	if again.Header != seg.Header || !again.Options.Equal(&kept) {
		t.Fatalf("read back %v\nkept %v", &again, &kept)
	}
	n2 := wire.Build(&b2, &again)
	if !bytes.Equal(b1[:n1], b2[:n2]) {
		t.Fatalf("built %x, then %x", b1[:n1], b2[:n2])
	}
}

// source gives out fuzz input as numbers, zeros when it is used up.
type source []byte

func (s *source) bytes(dst []byte) {
	n := copy(dst, *s)
	*s = (*s)[n:]
}

func (s *source) u8() uint8 {
	var b [1]byte
	s.bytes(b[:])
	return b[0]
}

func (s *source) u64() uint64 {
	var b [8]byte
	s.bytes(b[:])
	return binary.BigEndian.Uint64(b[:])
}

// options fills every field of some Options without regard to what is legal.
func (s *source) options() (o wire.Options) {
	o.Has, o.Bad = wire.OptionSet(s.u64()), wire.OptionSet(s.u8())
	o.DSS = wire.DSS{
		Flags: wire.DSSFlags(s.u8()), HasChecksum: s.u8()&1 != 0, Ack: s.u64(), DSN: s.u64(),
		SSN: uint32(s.u64()), Len: uint16(s.u64()), Checksum: uint16(s.u64()),
	}
	o.NumSACK, o.MSS, o.WScale = s.u8(), uint16(s.u64()), s.u8()
	for i := range o.SACK {
		o.SACK[i] = wire.SACKBlock{Left: seq.SSN(s.u64()), Right: seq.SSN(s.u64())}
	}
	o.TSVal, o.TSEcr, o.FailDSN = uint32(s.u64()), uint32(s.u64()), seq.DSN(s.u64())
	o.FastOpen.Len, o.PrioBackup = s.u8(), s.u8()&1 != 0
	s.bytes(o.FastOpen.Cookie[:])
	o.Capable = wire.MPCapable{
		Version: s.u8(), Flags: wire.CapableFlags(s.u8()), Keys: s.u8(), HasData: s.u8()&1 != 0,
		HasChecksum: s.u8()&1 != 0, DataLen: uint16(s.u64()), Checksum: uint16(s.u64()),
	}
	s.bytes(o.Capable.SenderKey[:])
	s.bytes(o.Capable.ReceiverKey[:])
	o.Join = wire.MPJoin{Form: wire.JoinForm(s.u8()), Backup: s.u8()&1 != 0, AddrID: s.u8(), Token: uint32(s.u64()), Nonce: uint32(s.u64())}
	s.bytes(o.Join.HMAC[:])
	o.AddAddr = wire.AddAddr{Echo: s.u8()&1 != 0, ID: s.u8(), Port: uint16(s.u64())}
	s.bytes(o.AddAddr.HMAC[:])
	var a [16]byte
	s.bytes(a[:])
	switch s.u8() % 4 {
	case 1:
		o.AddAddr.Addr = netip.AddrFrom4([4]byte(a[:4]))
	case 2:
		o.AddAddr.Addr = netip.AddrFrom16(a)
	case 3:
		o.AddAddr.Addr = netip.AddrFrom16(a).WithZone("z")
	}
	o.RemoveAddr.N = s.u8()
	s.bytes(o.RemoveAddr.IDs[:])
	o.TCPRst = wire.TCPRst{Transient: s.u8()&1 != 0, Reason: reason.Reset(s.u8())}
	s.bytes(o.FastClose[:])
	return o
}

// FuzzBuild builds a header from any Options whatever. It has at most 60 bytes,
// whole words, and exactly the options that Fit keeps; from the first reading on
// nothing changes any more.
func FuzzBuild(f *testing.F) {
	for _, has := range []wire.OptionSet{0, wire.OptDSS | wire.OptTimestamps, wire.OptMPTCP, 0xffffffff} {
		for _, fill := range []byte{0, 1, 2, 0x1f, 0xff} {
			seed := binary.BigEndian.AppendUint64(nil, uint64(has))
			f.Add(append(seed, bytes.Repeat([]byte{fill}, 400)...), fill&1 != 0)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, payload bool) {
		s := source(data)
		seg := wire.Segment{Options: s.options()}
		if payload {
			seg.Payload = [][]byte{nil, {1}}
		}
		_ = seg.String()
		_ = seg.Size()
		var b [wire.MaxHeader]byte
		n := wire.Build(&b, &seg)
		if n < wire.HeaderSize || n > wire.MaxHeader || n%4 != 0 || wire.HeaderLen(b[:n]) != n {
			t.Fatalf("header length %d", n)
		}
		kept := seg.Options
		dropped := wire.Fit(&kept, payload)
		if kept.Has|dropped != seg.Has || kept.Has&dropped != 0 {
			t.Fatalf("kept %v and dropped %v of %v", kept.Has, dropped, seg.Has)
		}
		if kept.Size() != n-wire.HeaderSize {
			t.Fatalf("size %d, built %d", kept.Size(), n-wire.HeaderSize)
		}
		var got wire.Segment
		if drop := wire.Parse(b[:n], &got); drop != reason.DropNone || got.Has != kept.Has || got.Bad != 0 {
			t.Fatalf("%v: read %v bad %v, kept %v", drop, got.Has, got.Bad, kept.Has)
		}
		got.Payload = seg.Payload
		checkFixpoint(t, &got)
	})
}
