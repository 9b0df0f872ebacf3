package main

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

func TestPageArrivesOverMPTCP(t *testing.T) {
	var out strings.Builder
	synctest.Test(t, func(t *testing.T) { require.NoError(t, run(&out)) })
	require.Equal(t, 3, strings.Count(out.String(), "you came by MPTCP over wifi"), out.String())
}
