package stream

import (
	"slices"
	"sort"
	"unsafe"
)

// run is a maximal stretch of contiguous bytes beyond a hole.
type run struct {
	lo, hi uint64 // positions
	chain
}

const runSize = int(unsafe.Sizeof(run{}))

// leafRuns is the room of a leaf: few enough that shifting them is cheap,
// enough that the list of leaves stays short.
const leafRuns = 32

// leaf holds some neighbouring runs, at least one.
type leaf struct {
	n int
	r [leafRuns]run
}

// runList holds runs in ascending order in leaves of limited size. Finding
// one costs O(log n); inserting or removing one moves the runs of a leaf and,
// once in many times, the list of leaves. A peer that sends every other byte
// can therefore make the list long but not slow.
type runList struct {
	leaves []*leaf
	spare  *leaf
	n      int // runs
}

// cursor is the place of a run in a runList. The zero cursor is the first
// place.
type cursor struct{ leaf, i int }

// get returns the run at a place, nil past the last one.
func (l *runList) get(at cursor) *run {
	if at.leaf >= len(l.leaves) {
		return nil
	}
	return &l.leaves[at.leaf].r[at.i]
}

// after returns the place that follows one that holds a run.
func (l *runList) after(at cursor) cursor {
	at.i++
	if at.i == l.leaves[at.leaf].n {
		return cursor{at.leaf + 1, 0}
	}
	return at
}

// search returns the place of the first run that ends at pos or later.
func (l *runList) search(pos uint64) cursor {
	n := len(l.leaves)
	if n == 0 {
		return cursor{}
	}
	k := n - 1
	if f := l.leaves[k]; n > 1 && f.r[0].lo > pos {
		k = sort.Search(k, func(i int) bool {
			f := l.leaves[i]
			return f.r[f.n-1].hi >= pos
		})
	}
	f := l.leaves[k]
	if f.r[f.n-1].hi < pos {
		return cursor{k + 1, 0}
	}
	return cursor{k, sort.Search(f.n, func(i int) bool { return f.r[i].hi >= pos })}
}

// insert puts a run at a place that search returned.
func (l *runList) insert(at cursor, r run) {
	l.n++
	if at.i == 0 && at.leaf > 0 { // between two leaves: fill the left one
		at = cursor{at.leaf - 1, l.leaves[at.leaf-1].n}
	}
	if len(l.leaves) == 0 {
		l.leaves = append(l.leaves, l.newLeaf())
	}
	f := l.leaves[at.leaf]
	if f.n == leafRuns {
		g := l.newLeaf()
		l.leaves = slices.Insert(l.leaves, at.leaf+1, g)
		keep := leafRuns / 2
		if at.i == leafRuns {
			keep = leafRuns // growing at the end: leave full leaves behind
		}
		g.n = copy(g.r[:], f.r[keep:])
		f.n = keep
		if at.i > keep || keep == leafRuns {
			f, at.i = g, at.i-keep
		}
	}
	copy(f.r[at.i+1:f.n+1], f.r[at.i:f.n])
	f.r[at.i] = r
	f.n++
}

// remove takes out the run at a place.
func (l *runList) remove(at cursor) {
	l.n--
	f := l.leaves[at.leaf]
	copy(f.r[at.i:], f.r[at.i+1:f.n])
	f.n--
	switch k := at.leaf + 1; {
	case f.n == 0:
		l.removeLeaf(at.leaf)
	case k < len(l.leaves) && f.n+l.leaves[k].n <= leafRuns/2:
		g := l.leaves[k]
		f.n += copy(f.r[f.n:], g.r[:g.n])
		l.removeLeaf(k)
	}
}

func (l *runList) newLeaf() *leaf {
	f := l.spare
	if f == nil {
		return new(leaf)
	}
	l.spare = nil
	return f
}

func (l *runList) removeLeaf(k int) {
	l.spare = l.leaves[k]
	l.spare.n = 0
	l.leaves = slices.Delete(l.leaves, k, k+1)
}
