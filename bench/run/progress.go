package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// progress keeps one line on a terminal up to date. Elsewhere it is silent.
type progress struct {
	w       io.Writer // nil = silent
	tick    *time.Ticker
	jobs    []*job
	workers int
	total   int
	done    int
	spent   map[*job]*spent
	all     spent
}

// spent is the time that units took.
type spent struct {
	seconds float64
	units   int
}

const barWidth = 30

func newProgress(w io.Writer, jobs []*job, workers int) *progress {
	p := &progress{jobs: jobs, workers: workers, spent: make(map[*job]*spent)}
	for _, j := range jobs {
		p.total += j.left
		p.spent[j] = &spent{}
	}
	if f, ok := w.(*os.File); ok && p.total > 0 {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			p.w, p.tick = w, time.NewTicker(250*time.Millisecond)
		}
	}
	return p
}

// ticks says when to show the line again; never if nobody sees it.
func (p *progress) ticks() <-chan time.Time {
	if p.w == nil {
		return nil
	}
	return p.tick.C
}

// note takes in that a unit is done.
func (p *progress) note(res result) {
	p.done++
	for _, s := range []*spent{p.spent[res.job], &p.all} {
		s.seconds += res.CPU
		s.units++
	}
}

// left estimates the time until all is done: each unit takes as long as those
// of its experiment did, or of all where none is done.
func (p *progress) left() (d time.Duration, known bool) {
	if p.all.units == 0 {
		return 0, false
	}
	var seconds float64
	for _, j := range p.jobs {
		s := p.spent[j]
		if s.units == 0 {
			s = &p.all
		}
		seconds += float64(j.left) * s.seconds / float64(s.units)
	}
	return time.Duration(seconds / float64(p.workers) * float64(time.Second)), true
}

// current is the experiment whose units are being run.
func (p *progress) current() string {
	for _, j := range p.jobs {
		if j.left > 0 {
			return j.Name
		}
	}
	return ""
}

func (p *progress) line() string {
	full := barWidth * p.done / max(p.total, 1)
	left := ""
	if d, ok := p.left(); ok {
		left = fmt.Sprintf(", %v left", d.Round(time.Second))
	}
	return fmt.Sprintf("[%s%s] %d of %d%s, %s", strings.Repeat("#", full), strings.Repeat(".", barWidth-full), p.done, p.total, left, p.current())
}

func (p *progress) show() { fmt.Fprintf(p.w, "\r%s\x1b[K", p.line()) }

// clear takes the line away.
func (p *progress) clear() {
	if p.w != nil {
		p.tick.Stop()
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
