package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// isTerminal reports whether f shows what is written to somebody.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// refresh is the time between two looks at the transfer.
const refresh = 200 * time.Millisecond

// progress returns a watcher that keeps one line of w up to date with the rate
// of each path.
func progress(w io.Writer) func(t *transfer, stop <-chan struct{}) {
	return func(t *transfer, stop <-chan struct{}) {
		tick := time.NewTicker(refresh)
		defer tick.Stop()
		last, at := pathReports(len(t.options.paths), nil), time.Now()
		for {
			select {
			case <-stop:
				fmt.Fprint(w, "\r\x1b[K")
				return
			case now := <-tick.C:
				paths := pathReports(len(t.options.paths), t.conn.Subflows())
				fmt.Fprint(w, "\r"+t.line(paths, last, now.Sub(at))+"\x1b[K")
				last, at = paths, now
			}
		}
	}
}

// line is the progress line: how much arrived in all and how fast each path
// was since the last look.
func (t *transfer) line(paths, last []pathReport, since time.Duration) string {
	var b strings.Builder
	var done uint64
	for i, p := range paths {
		done += p.Bytes
		fmt.Fprintf(&b, "  %s %5.1f Mb/s", p.Name, float64(p.Bytes-last[i].Bytes)*8/since.Seconds()/1e6)
		if i == t.options.leaving() && t.down.Load() {
			b.WriteString(" (down)")
		}
	}
	return fmt.Sprintf("%6.1f of %.1f MiB%s", float64(done)/(1<<20), float64(t.size)/(1<<20), b.String())
}
