package spec

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Item is one requirement and the script that checks it.
type Item struct {
	ID      string // M for MPTCP, T for TCP, and the number in the checklist
	Section string // RFC and section
	Level   string // MUST, SHOULD or MAY, or "is" for binding text without a key word
	Title   string
	Setup   Setup
	Only    Family
	Play    func(*Script)
}

// Family says on which IP versions an item is played.
type Family uint8

// Families; the zero value is both.
const (
	BothFamilies Family = iota
	OnlyIPv4
	OnlyIPv6
)

// Result is what became of an item.
type Result struct {
	ID      string  `json:"id"`
	Section string  `json:"section"`
	Level   string  `json:"level"`
	Verdict Verdict `json:"verdict"`
	Note    string  `json:"note"`

	Title string   `json:"-"`
	Trace []string `json:"-"` // of the run that decided
}

// Items returns all items whose id or title match, in order; a nil pattern
// matches all.
func Items(match *regexp.Regexp) []Item {
	var items []Item
	for _, group := range [][]Item{
		basicItems, capableItems, joinItems, mappingItems, dataItems, windowItems,
		addrItems, endItems, fallbackItems, otherItems, fastOpenItems,
		segmentItems, stateItems, timingItems, extensionItems, moreItems, rareItems,
	} {
		for _, it := range group {
			if match == nil || match.MatchString(it.ID+" "+it.Title) {
				items = append(items, it)
			}
		}
	}
	slices.SortStableFunc(items, func(a, b Item) int { return strings.Compare(a.ID, b.ID) })
	return items
}

// Maker makes a target for one run of an item.
type Maker func(Setup) (Target, error)

// Run plays an item against fresh targets, on each IP version it is meant for.
// The worst verdict counts.
func Run(it Item, target Maker) Result {
	r := Result{ID: it.ID, Section: it.Section, Level: it.Level, Title: it.Title}
	for _, ipv6 := range []bool{false, true} {
		if it.Only == OnlyIPv4 && ipv6 || it.Only == OnlyIPv6 && !ipv6 {
			continue
		}
		setup := it.Setup
		setup.IPv6 = ipv6
		v, trace := play(it, setup, target)
		if ipv6 && v.Verdict != Pass {
			v.Note = "IPv6: " + v.Note
		}
		if r.Verdict == "" || rank[v.Verdict] > rank[r.Verdict] {
			r.Verdict, r.Note, r.Trace = v.Verdict, v.Note, trace
		}
	}
	return r
}

// rank orders verdicts from best to worst.
var rank = map[Verdict]int{Pass: 0, Skip: 1, Deviation: 2, Fail: 3}

// play plays an item once.
func play(it Item, setup Setup, target Maker) (v verdict, trace []string) {
	t, err := target(setup)
	if err != nil {
		return verdict{Skip, fmt.Sprintf("no target: %v", err)}, nil
	}
	defer t.Close()
	s := &Script{T: t, Setup: setup}
	defer func() {
		trace = s.log
		switch e := recover().(type) {
		case nil:
		case verdict:
			v = e
		default:
			panic(e)
		}
	}()
	it.Play(s)
	return verdict{Verdict: Pass}, nil
}
