package speed

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/mptcp"
)

// Nothing here judges a speed: a machine may be busy. The tests show that every
// measurement can be made, and that it measures what it says.
const moment = 10 * time.Millisecond

var setups = map[string]Setup{
	"gvisor": {Link: Wire, GVisor: true},
	"tcp":    {Link: Wire, MPTCP: &mptcp.Config{Plain: true}},
	"mptcp":  {Link: Offload, Paths: 2},
}

func rigOf(t *testing.T, s Setup) *Rig {
	t.Helper()
	r, err := New(s)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

func TestEveryStackIsMeasured(t *testing.T) {
	for name, s := range setups {
		t.Run(name, func(t *testing.T) {
			r := rigOf(t, s)
			client, server, err := r.Connect()
			require.NoError(t, err)
			if c, ok := client.(*mptcp.Conn); ok {
				require.Equal(t, name == "mptcp", c.Info().MPTCP)
				require.Equal(t, max(s.Paths, 1), c.Info().Subflows)
			}
			used, err := Bulk(client, server, moment, moment)
			require.NoError(t, err)
			require.GreaterOrEqual(t, used.Units, float64(WriteSize))
			require.GreaterOrEqual(t, used.Wall, moment)

			// gVisor keeps the port of a listener while its connections last.
			client, server, err = rigOf(t, s).Connect()
			require.NoError(t, err)
			used, err = PingPong(client, server, moment)
			require.NoError(t, err)
			require.GreaterOrEqual(t, used.Units, 1.0)

			used, err = Dials(rigOf(t, s), moment)
			require.NoError(t, err)
			require.GreaterOrEqual(t, used.Units, 1.0)
		})
	}
}

func TestIdleConnectionsAreHeld(t *testing.T) {
	r := rigOf(t, setups["mptcp"])
	held, err := Hold(r, 20)
	require.NoError(t, err)
	require.Len(t, held.clients, 20)
	require.Positive(t, held.Bytes)
	require.NoError(t, held.Close())
}

// As root on Linux, the kernel takes part.
func TestKernelTakesPart(t *testing.T) {
	rates, err := Kernel(moment, 1)
	if !HasKernel || os.Geteuid() != 0 {
		require.Error(t, err)
		return
	}
	require.NoError(t, err)
	for _, name := range []string{"gvisor out", "gvisor in", "tcp out", "tcp in", "mptcp2 out", "mptcp2 in", "veth mptcp2"} {
		require.Positive(t, rates[name], name)
	}
}
