package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/gomptcp/gomptcp/mptcp"
)

// report is the result of a run, as -json prints it.
type report struct {
	SHA256OK bool         `json:"sha256_ok"`
	Bytes    int64        `json:"bytes"`
	Seconds  float64      `json:"seconds"`
	Goodput  float64      `json:"goodput_mbps"`
	Paths    []pathReport `json:"paths"`
}

// pathReport is what one path carried, over all subflows that it had.
type pathReport struct {
	Name          string  `json:"name"`
	Bytes         uint64  `json:"bytes"`         // delivered and acknowledged
	Share         float64 `json:"share"`         // of the bytes of all paths, 0 to 1
	SRTT          float64 `json:"srtt_ms"`       // of the newest subflow
	Retransmitted uint64  `json:"retransmitted"` // bytes sent again on the same path
	Reinjected    uint64  `json:"reinjected"`    // bytes sent here after another path had them
}

// newReport makes the report of an outcome.
func newReport(o *options, out *outcome) *report {
	r := &report{
		SHA256OK: out.got.sum == out.wanted,
		Bytes:    out.got.bytes,
		Seconds:  out.seconds,
		Paths:    pathReports(len(o.paths), out.subflows),
	}
	if r.Seconds > 0 {
		r.Goodput = float64(r.Bytes) * 8 / r.Seconds / 1e6
	}
	return r
}

// pathReports sums the subflows by path.
func pathReports(n int, subflows []mptcp.SubflowInfo) []pathReport {
	paths := make([]pathReport, n)
	var all uint64
	for i := range paths {
		p := &paths[i]
		p.Name = name(i)
		for _, s := range subflows {
			if s.Local.Addr() != address(i, clientHost) {
				continue
			}
			p.Bytes += s.BytesAcked
			p.Retransmitted += s.BytesRetransmitted
			p.Reinjected += s.BytesReinjected
			if s.SRTT > 0 {
				p.SRTT = s.SRTT.Seconds() * 1e3
			}
		}
		all += p.Bytes
	}
	for i := range paths {
		if all > 0 {
			paths[i].Share = float64(paths[i].Bytes) / float64(all)
		}
	}
	return paths
}

// writeJSON prints the report as one line of JSON.
func (r *report) writeJSON(w io.Writer) error { return json.NewEncoder(w).Encode(r) }

// writeText prints the report for people.
func (r *report) writeText(w io.Writer) error {
	verdict := "SHA-256 equal"
	if !r.SHA256OK {
		verdict = "SHA-256 DIFFERS"
	}
	fmt.Fprintf(w, "%.1f MiB in %.2f s: %.1f Mb/s, %s\n\n", float64(r.Bytes)/(1<<20), r.Seconds, r.Goodput, verdict)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "path\tbytes\tshare\tRTT\tretransmitted\treinjected\t")
	for _, p := range r.Paths {
		fmt.Fprintf(t, "%s\t%d\t%.1f %%\t%.1f ms\t%d\t%d\t\n", p.Name, p.Bytes, p.Share*100, p.SRTT, p.Retransmitted, p.Reinjected)
	}
	return t.Flush()
}
