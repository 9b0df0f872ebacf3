package host

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLRUForgetsWhatWasNotTouchedLongest(t *testing.T) {
	l := newLRU[int, string](3)
	require.Nil(t, l.get(1))
	for i := 1; i <= 3; i++ {
		*l.touch(i) = "x"
	}
	require.Equal(t, "x", *l.touch(1))
	require.Equal(t, "x", *l.get(2), "a look does not touch it")
	require.Empty(t, *l.touch(4))
	require.Nil(t, l.get(2))
	require.NotNil(t, l.get(1))
	l.remove(1)
	l.remove(1)
	require.Nil(t, l.get(1))
	for i := range 100 {
		l.touch(i)
		require.LessOrEqual(t, len(l.entries), 3)
		require.Equal(t, len(l.entries), l.order.Len())
	}
}
