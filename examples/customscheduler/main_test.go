package main

import (
	"bytes"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/scheduler"
)

func TestPolicy(t *testing.T) {
	policy := thrifty{metered: map[int]bool{1: true}, patience: 1000}
	v := &scheduler.View{
		Unsent:   1000,
		Subflows: []scheduler.Subflow{{ID: 0, SRTT: 20, Room: 0}, {ID: 1, SRTT: 40, Room: 100}},
	}
	require.True(t, policy.Pick(v).Wait, "it can wait for the other")
	v.Unsent++
	require.Equal(t, uint64(0b10), policy.Pick(v).Send)
	v.Unsent, v.Subflows[0].Stale = 1, true
	require.Equal(t, uint64(0b10), policy.Pick(v).Send, "there is no other")
}

// All arrives, and a link that is to be spared however much waits carries
// nothing.
func TestTransfer(t *testing.T) {
	data := bytes.Repeat([]byte("custom "), 50_000)
	subflows, err := transfer(func() scheduler.Scheduler {
		return thrifty{metered: map[int]bool{1: true}, patience: math.MaxInt64}
	}, data)
	require.NoError(t, err)
	for _, s := range subflows {
		if s.Link == "metered" {
			require.Zero(t, s.BytesSent)
		}
	}
}

// A policy takes less than 60 lines, comments and main included.
func TestShort(t *testing.T) {
	source, err := os.ReadFile("main.go")
	require.NoError(t, err)
	require.Less(t, bytes.Count(source, []byte("\n")), 60)
}
