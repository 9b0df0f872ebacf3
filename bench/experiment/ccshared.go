package experiment

import (
	"fmt"
	"time"

	"github.com/gomptcp/gomptcp/cc"
	"github.com/gomptcp/gomptcp/internal/host"
	"github.com/gomptcp/gomptcp/internal/link"
)

// ccSharedTrials are networks on which two subflows of the default control share
// a queue, or not.
var ccSharedTrials = []struct {
	name  string
	links []link.Config
	tcp   bool // a TCP is on the first link
}{
	{"one", []link.Config{ccLink(10e6, 40*time.Millisecond)}, true},
	{"one fast", []link.Config{ccLink(100e6, 20*time.Millisecond)}, true},
	{"one alone", []link.Config{ccLink(10e6, 40*time.Millisecond)}, false},
	{"two", []link.Config{ccLink(10e6, 40*time.Millisecond), ccLink(8e6, 60*time.Millisecond)}, true},
	{"two alike", []link.Config{ccLink(10e6, 40*time.Millisecond), ccLink(10e6, 40*time.Millisecond)}, true},
	{"two alike alone", []link.Config{ccLink(10e6, 40*time.Millisecond), ccLink(10e6, 40*time.Millisecond)}, false},
}

// ccShared: how often two subflows are found to share a bottleneck, after 25 s.
func ccShared(u *Unit, links []link.Config, tcp bool, d time.Duration) error {
	manager := ""
	if len(links) == 1 {
		manager = "ndiffports"
	}
	conn := u.Conn("", "default", manager)
	inner := conn.Congestion
	var groups []cc.Group
	conn.Congestion = func() cc.Group {
		groups = append(groups, inner())
		return groups[len(groups)-1]
	}
	conns := []host.ConnConfig{conn}
	if tcp {
		conns = append(conns, u.Plain("reno"))
	}
	n := newCCNet(u, links, conns...)
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
