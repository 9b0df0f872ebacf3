package main

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

func TestLinesComeBack(t *testing.T) {
	var out strings.Builder
	synctest.Test(t, func(t *testing.T) {
		require.NoError(t, run(strings.NewReader("one\ntwo\n"), &out))
	})
	require.True(t, strings.HasPrefix(out.String(), "one\ntwo\n"), out.String())
	require.Contains(t, out.String(), "over wifi")
}
