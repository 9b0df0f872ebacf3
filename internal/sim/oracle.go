package sim

import "encoding/binary"

// pattern is an endless stream of bytes in which the value at each place is
// known, so that what arrives can be checked wherever it is.
type pattern struct{ seed uint64 }

// word returns bytes 8i to 8i+7 (SplitMix64 of the place).
func (p pattern) word(i uint64) uint64 {
	z := p.seed + (i+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// fill writes the bytes from off on into b.
func (p pattern) fill(b []byte, off uint64) {
	for len(b) > 0 {
		var w [8]byte
		binary.LittleEndian.PutUint64(w[:], p.word(off/8))
		n := copy(b, w[off%8:])
		b, off = b[n:], off+uint64(n)
	}
}

// check compares b with the bytes from off on. It returns the index of the
// first that differs, or -1.
func (p pattern) check(b []byte, off uint64) int {
	for i := 0; i < len(b); {
		var w [8]byte
		binary.LittleEndian.PutUint64(w[:], p.word(off/8))
		for _, c := range w[off%8:] {
			if i == len(b) {
				break
			}
			if b[i] != c {
				return i
			}
			i++
			off++
		}
	}
	return -1
}
