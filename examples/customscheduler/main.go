// Command customscheduler sends 4 MiB with a scheduler of its own: it spares
// the metered link as long as no more than 64 KiB wait for the other one.
package main

import (
	"fmt"
	"log"
	"math/rand/v2"

	"github.com/gomptcp/gomptcp/scheduler"
)

// thrifty uses the fastest subflow that has room, but those of the set metered,
// by ID, only if more than patience bytes wait.
type thrifty struct {
	metered  map[int]bool
	patience int64
}

func (t thrifty) Pick(v *scheduler.View) scheduler.Decision {
	if v.Ask != scheduler.Fresh {
		return scheduler.LeastRTT(v) // what was lost goes anywhere
	}
	set, _ := v.Eligible() // backups and dead subflows are the last resort
	if v.Unsent <= t.patience {
		for i, s := range v.Subflows {
			if t.metered[s.ID] && set != 1<<i {
				set &^= 1 << i
			}
		}
	}
	best := v.Fastest(v.Free(set))
	if best < 0 {
		return scheduler.Decision{Wait: true, Reason: "sparing the metered link"}
	}
	return scheduler.Decision{Send: 1 << best, Reason: "fastest that may"}
}

func main() {
	policy := func() scheduler.Scheduler {
		return thrifty{metered: map[int]bool{1: true}, patience: 64 << 10}
	}
	data := make([]byte, 4<<20)
	rand.NewChaCha8([32]byte{}).Read(data)
	subflows, err := transfer(policy, data)
	if err != nil {
		log.Fatal("customscheduler: ", err)
	}
	for _, s := range subflows {
		fmt.Printf("subflow %d over %s: %d bytes\n", s.ID, s.Link, s.BytesSent)
	}
}
