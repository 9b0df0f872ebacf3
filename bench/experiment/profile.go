package experiment

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/gomptcp/gomptcp/internal/host"
	"github.com/gomptcp/gomptcp/internal/pathmgr"
	"github.com/gomptcp/gomptcp/internal/sim"
)

// Profile says what the hosts of an experiment are like.
type Profile uint8

// Profiles.
const (
	Modern  Profile = iota // this module's defaults
	NS32015                // the MPTCP model of ns-3 that papers of 2015 ran on (Kheirkhah)
)

// Profiles are the names of all profiles, by value.
var Profiles = [...]string{Modern: "modern", NS32015: "ns3-2015"}

func (p Profile) String() string { return Profiles[p] }

// ProfileByName returns the profile with a name.
func ProfileByName(name string) (Profile, error) {
	for p, n := range Profiles {
		if n == name {
			return Profile(p), nil
		}
	}
	return 0, fmt.Errorf("no profile is called %q; there are %v", name, Profiles)
}

// MTU returns the bytes of an IP packet on the profile's links. A full segment
// of the old model carries 1400 bytes; headers, timestamps and DSS come on top.
func (p Profile) MTU() int {
	if p == NS32015 {
		return 1400 + 20 + 20 + 12 + 20
	}
	return 1500
}

// Conn returns the configuration of a connection with policies by name ("" =
// the default) on hosts of the unit's profile. Unknown names panic. The old
// model's knobs: a first window of one segment, a first slow-start threshold of
// 65,535 bytes, a retransmission timeout of at least 200 ms, three duplicate
// ACKs, neither SACK nor RACK, and up to 50 ms between the joins of subflows.
func (u *Unit) Conn(sched, congestion, manager string) host.ConnConfig {
	c := sim.ConnWith(sched, congestion, manager)
	if u.Profile == NS32015 {
		c.Subflow.InitialWindow = 1
		c.Subflow.InitialSsthresh = 65535
		c.Subflow.MinRTO = 200 * time.Millisecond
		c.Subflow.DupThresh = 3
		c.Subflow.NoSACK, c.Subflow.NoRACK = true, true
	}
	c.PathManager = u.joins(c.PathManager)
	return c
}

// joins returns a path manager that opens subflows as hosts of the unit's
// profile do.
func (u *Unit) joins(m pathmgr.Factory) pathmgr.Factory {
	if u.Profile == NS32015 {
		return spreadJoins(m, u.Rand("gaps between joins"), 50*time.Millisecond)
	}
	return m
}

// Plain is Conn for plain TCP.
func (u *Unit) Plain(congestion string) host.ConnConfig {
	c := u.Conn("", congestion, "")
	c.Plain, c.PathManager = true, nil
	return c
}

// spreadJoins makes policies that wait a random time of up to most before they
// open each further subflow.
func spreadJoins(inner pathmgr.Factory, rng *rand.Rand, most time.Duration) pathmgr.Factory {
	return func() pathmgr.Policy { return &spread{inner: inner(), rng: rng, most: most} }
}

// spread is a policy that holds back another one's OpenSubflow commands.
type spread struct {
	inner pathmgr.Policy
	rng   *rand.Rand
	most  time.Duration
	held  []heldCommand // in the order of their times
}

type heldCommand struct {
	at time.Duration
	pathmgr.Command
}

// holds reports whether the subflow that c opens is being held back already.
func (s *spread) holds(c pathmgr.Command) bool {
	return slices.ContainsFunc(s.held, func(h heldCommand) bool {
		return h.Local.Addr() == c.Local.Addr() && h.Remote == c.Remote
	})
}

// Handle implements pathmgr.Policy.
func (s *spread) Handle(v *pathmgr.View, e pathmgr.Event, cmds []pathmgr.Command) []pathmgr.Command {
	from := len(cmds)
	cmds = s.inner.Handle(v, e, cmds)
	out := cmds[:from]
	at := e.Now
	if n := len(s.held); n > 0 {
		at = max(at, s.held[n-1].at)
	}
	for _, c := range cmds[from:] {
		if c.Verb != pathmgr.OpenSubflow {
			out = append(out, c)
			continue
		}
		if s.holds(c) {
			continue // asked for again, as it was not seen to begin
		}
		at += time.Duration(s.rng.Int64N(int64(s.most) + 1))
		s.held = append(s.held, heldCommand{at, c})
	}
	for len(s.held) > 0 && s.held[0].at <= e.Now {
		out = append(out, s.held[0].Command)
		s.held = s.held[1:]
	}
	if len(s.held) > 0 {
		out = append(out, pathmgr.Command{Verb: pathmgr.Wake, At: s.held[0].at})
	}
	return out
}
