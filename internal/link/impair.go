package link

import (
	"time"

	"github.com/gomptcp/gomptcp/internal/mono"
)

// arrival returns when a packet that has left the queue reaches the far end.
// Jitter keeps order: a packet that would overtake arrives with the one
// before it. Only a packet held back for reordering lets later ones pass.
func (l *Link) arrival(leaves mono.Time) mono.Time {
	at := leaves.Add(l.config.Delay)
	if j := l.config.Jitter; j > 0 {
		at = at.Add(time.Duration(l.rng.Float64() * float64(j)))
	}
	at = max(at, l.last)
	if l.chance(l.config.Reorder) {
		return at.Add(l.config.ReorderBy)
	}
	l.last = at
	return at
}

// chance reports whether something of probability p happens. What cannot
// happen takes nothing from the random source.
func (l *Link) chance(p float64) bool { return p > 0 && l.rng.Float64() < p }

func dropped(why Drop) Verdict { return Verdict{Drop: why, Corrupt: NoCorruption} }
