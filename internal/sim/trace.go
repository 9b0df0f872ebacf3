package sim

import (
	"encoding/binary"

	"github.com/gomptcp/gomptcp/internal/mono"
)

// Parameters of FNV-1a with 64 bits.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// trace is a running hash over everything that was delivered.
type trace struct {
	hash   uint64
	coarse bool // times, places and sizes only
}

func newTrace() trace { return trace{hash: fnvOffset} }

func (t *trace) sum() uint64 { return t.hash }

func (t *trace) bytes(b []byte) {
	h := t.hash
	for _, c := range b {
		h = (h ^ uint64(c)) * fnvPrime
	}
	t.hash = h
}

// words mixes in eight bytes at a time: payload, which is long.
func (t *trace) words(b []byte) {
	h := t.hash
	for ; len(b) >= 8; b = b[8:] {
		h = (h ^ binary.LittleEndian.Uint64(b)) * fnvPrime
		h ^= h >> 32
	}
	t.hash = h
	t.bytes(b)
}

// add takes in a packet that arrived at now over direction dir.
func (t *trace) add(now mono.Time, dir int, p *packet) {
	if t.coarse {
		h := (t.hash ^ uint64(now)) * fnvPrime
		h = (h ^ uint64(dir)<<32 ^ uint64(p.size)) * fnvPrime
		t.hash = h ^ h>>32
		return
	}
	var b [64]byte
	w := binary.BigEndian.AppendUint64(b[:0], uint64(now))
	w = append(w, byte(dir), byte(p.ecn))
	w = append(w, p.src.Addr().AsSlice()...)
	w = append(w, p.dst.Addr().AsSlice()...)
	t.bytes(w)
	t.bytes(p.head)
	t.words(p.payload)
	for _, v := range p.more {
		t.words(v)
	}
}
