package spec

import (
	"encoding/json"
	"fmt"
	"io"
)

// Report is what a target made of the items.
type Report struct {
	Target string   `json:"target"`
	Items  []Result `json:"items"`
}

// Count returns how many items have a verdict.
func (r *Report) Count(v Verdict) int {
	n := 0
	for i := range r.Items {
		if r.Items[i].Verdict == v {
			n++
		}
	}
	return n
}

// WriteJSON writes the report as one line.
func (r *Report) WriteJSON(w io.Writer) error { return json.NewEncoder(w).Encode(r) }

// WriteTable writes the report as a table with a line of counts.
func (r *Report) WriteTable(w io.Writer) error {
	for i := range r.Items {
		it := &r.Items[i]
		line := fmt.Sprintf("%-4s %-9s %-6s %-14s %s", it.ID, it.Verdict, it.Level, it.Section, it.Title)
		if it.Note != "" {
			line += "\n               " + it.Note
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "\n%s: %d items, %d pass, %d fail, %d deviation, %d skip\n", r.Target, len(r.Items),
		r.Count(Pass), r.Count(Fail), r.Count(Deviation), r.Count(Skip))
	return err
}
