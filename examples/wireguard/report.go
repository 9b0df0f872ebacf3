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
	SHA256OK bool           `json:"sha256_ok"`
	Bytes    int64          `json:"bytes"`
	Seconds  float64        `json:"seconds"` // from the first write to the last byte read
	Goodput  float64        `json:"goodput_mbps"`
	Tunnels  []tunnelReport `json:"tunnels"`
}

// tunnelReport is what the client saw of one tunnel.
type tunnelReport struct {
	Name       string  `json:"name"`
	Bytes      uint64  `json:"bytes"`      // delivered and acknowledged
	Share      float64 `json:"share"`      // of the bytes of all tunnels, 0 to 1
	SRTT       float64 `json:"srtt_ms"`    // of the newest subflow
	Reinjected uint64  `json:"reinjected"` // bytes sent here after another tunnel had them
	Encrypted  uint64  `json:"encrypted"`  // bytes that WireGuard sent, its overhead included
	Dropped    uint64  `json:"dropped"`    // packets dropped between the hosts and WireGuard
}

// fill adds what became of each tunnel.
func (r *report) fill(n *network, subflows []mptcp.SubflowInfo) error {
	if r.Seconds > 0 {
		r.Goodput = float64(r.Bytes) * 8 / r.Seconds / 1e6
	}
	var all uint64
	for i, t := range n.tunnels {
		of := tunnelReport{Name: name(i), Dropped: t.clientTUN.dropped.Load() + t.serverTUN.dropped.Load()}
		for _, s := range subflows {
			if s.Link != of.Name {
				continue
			}
			of.Bytes += s.BytesAcked
			of.Reinjected += s.BytesReinjected
			if s.SRTT > 0 {
				of.SRTT = s.SRTT.Seconds() * 1e3
			}
		}
		var err error
		if of.Encrypted, err = value(t.client, "tx_bytes"); err != nil {
			return err
		}
		all += of.Bytes
		r.Tunnels = append(r.Tunnels, of)
	}
	for i := range r.Tunnels {
		if all > 0 {
			r.Tunnels[i].Share = float64(r.Tunnels[i].Bytes) / float64(all)
		}
	}
	return nil
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
	fmt.Fprintln(t, "tunnel\tbytes\tshare\tRTT\treinjected\tencrypted\tdropped\t")
	for _, of := range r.Tunnels {
		fmt.Fprintf(t, "%s\t%d\t%.1f %%\t%.1f ms\t%d\t%d\t%d\t\n",
			of.Name, of.Bytes, of.Share*100, of.SRTT, of.Reinjected, of.Encrypted, of.Dropped)
	}
	return t.Flush()
}
