package bench

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// BenchmarkBulk is one connection that sends as fast as it can. An operation
// is a Write of 256 KiB; MB/s counts until the last byte was read, MB/cpu-s is
// per second of processor time of both hosts, which other load on the machine
// disturbs less.
func BenchmarkBulk(b *testing.B) {
	for _, link := range links {
		b.Run(link.name, func(b *testing.B) {
			each(b, link.cfg, func(b *testing.B, c contender, r rig) {
				client, server := r.connect(b, c)
				defer server.Close()
				bulk(b, client, server)
			})
		})
	}
}

// bulk closes the client.
func bulk(b *testing.B, client, server net.Conn) {
	received := make(chan error, 1)
	go func() { received <- drain(server) }()
	data := make([]byte, writeSize)
	b.SetBytes(writeSize)
	b.ReportAllocs()
	start, cpu := time.Now(), cpuTime()
	for b.Loop() {
		if _, err := client.Write(data); err != nil {
			b.Fatal(err)
		}
	}
	if err := client.Close(); err != nil {
		b.Fatal(err)
	}
	if err := <-received; err != nil {
		b.Fatal(err)
	}
	megabytes := float64(b.N) * writeSize / 1e6
	b.ReportMetric(megabytes/time.Since(start).Seconds(), "MB/s")
	if used := cpuTime() - cpu; used > 0 {
		b.ReportMetric(megabytes/used.Seconds(), "MB/cpu-s")
	}
}

// drain reads to the end.
func drain(c net.Conn) error {
	buf := make([]byte, writeSize)
	for {
		if _, err := c.Read(buf); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}
