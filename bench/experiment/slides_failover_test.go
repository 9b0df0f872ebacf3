package experiment

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// With these seeds the first ACK after the outage proves the first timeout
// needless, while everything behind what it acknowledges was lost and the
// window leaves no room: the connection must not wait for the timer then.
func TestFailoverEndsAlsoWhenATimeoutWasNeedless(t *testing.T) {
	for _, c := range planFailover(Options{}).Cases {
		for _, seed := range []uint64{4, 5} {
			out, err := Execute(c, seed, Options{})
			require.NoError(t, err)
			require.LessOrEqual(t, out.Values["after return s"], 3.0, "%s, seed %d", c.Name, seed)
		}
	}
}
