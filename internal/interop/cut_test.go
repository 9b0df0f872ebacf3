//go:build linux

package interop

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// cuts are the ways to lose a link half-way through the client's sending.
var cuts = []struct {
	name string
	link int // counted from 1; the connection begins on 1
	cut  func(t *testing.T, r *rig, link int)
}{
	{"silent loss of the first link", 1, silence},
	{"silent loss of the second link", 2, silence},
	{"our first link goes down", 1, down},
	{"our second link goes down", 2, down},
}

// silence makes a link drop everything; nobody is told.
func silence(t *testing.T, r *rig, link int) {
	t.Logf("link %d is cut", link)
	r.links[link-1].SetUp(false)
}

// down makes our host notice that a link is gone.
func down(t *testing.T, r *rig, link int) {
	t.Logf("link %d is down", link)
	if err := r.host.SetLinkUp(r.links[link-1].Name(), false); err != nil {
		t.Error(err)
	}
}

// half is what crosses in each direction of the transfers that lose a link.
const half = 16 * mebi

func TestOurClientSurvivesTheLossOfALink(t *testing.T) {
	for _, c := range cuts {
		t.Run(c.name, func(t *testing.T) {
			isolated(t, 2*time.Minute, func(t *testing.T) {
				r := newRig(t, ipv4, equal)
				r.announce(t)
				server := kernelServe(t, kernelListen(t, true), true, half)
				conn := r.dial(t, nil)
				within(t, conn, 100*time.Second)
				defer logSubflows(t, conn)
				exchangeCutting(t, conn, server, half, func() { c.cut(t, r, c.link) })
				got := kernelCounters(t)
				logCounters(t, got)
				require.Equal(t, 1, got["MPJoinAckRx"])
				requireNoFaults(t, got)
				r.requireCleanCapture(t)
			})
		})
	}
}

func TestOurServerSurvivesTheLossOfALink(t *testing.T) {
	for _, c := range cuts {
		t.Run(c.name, func(t *testing.T) {
			isolated(t, 2*time.Minute, func(t *testing.T) {
				r := newRig(t, ipv4, equal)
				taken, done := r.serve(t, half)
				conn := kernelDial(t, true, at(r.family.addr(1, ours)))
				within(t, conn, 100*time.Second)
				server := <-taken
				defer logSubflows(t, server)
				exchangeCutting(t, conn, done, half, func() { c.cut(t, r, c.link) })
				got := kernelCounters(t)
				logCounters(t, got)
				require.Equal(t, 1, got["MPJoinSynAckRx"])
				requireNoFaults(t, got)
				r.requireCleanCapture(t)
			})
		})
	}
}
