package bench

import (
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip/checksum"
)

// BenchmarkChecksum compares two ways to sum the bytes of a Write for the DSS
// checksum: once they were copied, as the send queue and the mappings do, or 2
// KiB at a time while they are copied.
func BenchmarkChecksum(b *testing.B) {
	const cell = 2 << 10
	from, to := make([]byte, writeSize), make([]byte, writeSize)
	var sum uint16
	for _, way := range []struct {
		name string
		do   func()
	}{
		{"after the copy", func() {
			copy(to, from)
			sum = checksum.Checksum(to, 0)
		}},
		{"with the copy", func() {
			for i := 0; i < writeSize; i += cell {
				copy(to[i:i+cell], from[i:i+cell])
				sum = checksum.Combine(sum, checksum.Checksum(to[i:i+cell], 0))
			}
		}},
	} {
		b.Run(way.name, func(b *testing.B) {
			b.SetBytes(writeSize)
			for b.Loop() {
				way.do()
			}
		})
	}
}
