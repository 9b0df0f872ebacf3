package experiment

import (
	"fmt"
	"time"

	"github.com/gomptcp/gomptcp/cc"
	"github.com/gomptcp/gomptcp/internal/link"
)

// ccShared: how often two subflows of the default control, with a TCP beside
// them, are found to share a bottleneck after 25 s: through one queue, or two.
func ccShared(u *Unit, queues int, d time.Duration) error {
	links := []link.Config{ccLink(10e6, 40*time.Millisecond), ccLink(8e6, 60*time.Millisecond)}[:queues]
	conn := u.Conn("", "default", []string{"ndiffports", ""}[queues-1])
	inner := conn.Congestion
	var groups []cc.Group
	conn.Congestion = func() cc.Group {
		groups = append(groups, inner())
		return groups[len(groups)-1]
	}
	n := newCCNet(u, links, conn, u.Plain("reno"))
	n.RunFor(25 * time.Second)
	together, all := 0.0, 0.0
	for range d / (350 * time.Millisecond) {
		n.RunFor(350 * time.Millisecond)
		all++
		for _, g := range groups {
			if sets, _ := g.(cc.BottleneckObserver).Shared(); len(sets) > 0 {
				together++
				break
			}
		}
	}
	u.Set("grouped", together/all)
	if len(groups) != 2 {
		return fmt.Errorf("%d groups for both ends", len(groups))
	}
	return u.Check(n.Sim)
}
