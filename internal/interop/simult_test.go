//go:build linux

package interop

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/mptcp"
	"github.com/gomptcp/gomptcp/netstack"
)

// The transfers of Linux's simult_flows.sh.
const (
	large = 16 * mebi
	small = 80 << 10
)

// Two links at once carry a large transfer one way and a small one the other
// within the time that Linux's own test allows itself, either side being the
// kernel and either sending the large one.
//
// Time is real here, and another process may spoil one try: each has three.
func TestSimultaneousFlows(t *testing.T) {
	for _, tt := range []simultaneous{
		{rates: [2]float64{10, 10}},
		{rates: [2]float64{10, 10}, delays: [2]time.Duration{1, 25}},
		{rates: [2]float64{15, 5}},
		{rates: [2]float64{15, 5}, delays: [2]time.Duration{1, 25}},
		{rates: [2]float64{15, 5}, delays: [2]time.Duration{25, 1}},
		// Of older kernels' test.
		{rates: [2]float64{30, 10}},
		{rates: [2]float64{10, 3}, delays: [2]time.Duration{1, 25}},
	} {
		for _, tt.kernel = range []side{client, server} {
			for _, tt.back = range []bool{false, true} {
				t.Run(tt.String(), func(t *testing.T) {
					t.Parallel()
					isolated(t, 2*time.Minute, func(t *testing.T) {
						for try := 1; !tt.run(t); try++ {
							require.Less(t, try, 3, "too slow each time")
						}
					})
				})
			}
		}
	}
}

// simultaneous is one case of the test.
type simultaneous struct {
	rates  [2]float64       // Mb/s
	delays [2]time.Duration // ms, one way
	kernel side
	back   bool // the server sends the large one
}

func (s simultaneous) String() string {
	sc := scenario{name: fmt.Sprintf("%v Mb/s, %d ms, back %t", s.rates, s.delays, s.back), kernel: s.kernel}
	return sc.title()
}

// limit is Linux's: size x 8 x 10 / (9 x sum of rates) + 450 ms.
func (s simultaneous) limit() time.Duration {
	return time.Duration(large*8*10/(9*(s.rates[0]+s.rates[1])*1e6)*float64(time.Second)) + 450*time.Millisecond
}

// sendJoined is send that does not end the stream before the second subflow is
// there: a Linux whose connection is being closed, by whichever side, refuses
// joins. The tool of the self-tests waits for the same reason (option -j).
func sendJoined(conn *mptcp.Conn, c halfCloser, src io.Reader) error {
	wait := readerFunc(func([]byte) (int, error) {
		for end := time.Now().Add(patience); conn.Info().Subflows < 2; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				return 0, errors.New("no second subflow")
			}
		}
		return 0, io.EOF
	})
	return send(c, io.MultiReader(src, wait))
}

// run reports whether the transfers were done in time.
func (s simultaneous) run(t *testing.T) bool {
	var links []netstack.Shape
	for i, rate := range s.rates {
		// A netem queue holds 1000 packets.
		links = append(links, netstack.Shape{Rate: rate * 1e6, Delay: s.delays[i] * time.Millisecond, QueueBytes: 1000 * 1500})
	}
	r := newRig(t, ipv4, links)
	defer r.host.Close()
	ip(t, "mptcp endpoint flush")
	before := kernelCounters(t)
	up, down := int64(large), int64(small)
	if s.back {
		up, down = down, up
	}

	var c, d halfCloser
	var conn *mptcp.Conn // ours of them
	if s.kernel == server {
		r.announce(t)
		l := kernelListen(t, true)
		defer l.Close()
		conn = r.dial(t, nil)
		c = conn
		accepted, err := l.AcceptTCP()
		require.NoError(t, err)
		d = accepted
	} else {
		l, err := r.host.Listen("mptcp", fmt.Sprintf(":%d", port))
		require.NoError(t, err)
		c = kernelDial(t, true, at(r.family.addr(1, ours)))
		accepted, err := l.Accept()
		require.NoError(t, err)
		conn = accepted.(*mptcp.Conn)
		d = conn
	}
	defer c.Close()
	defer d.Close()
	within(t, c, time.Minute)
	within(t, d, time.Minute)

	begun := time.Now()
	errs, atServer := make(chan error, 2), make(chan received, 1)
	go func() { errs <- sendJoined(conn, c, payload(up, clientSeed)) }()
	go func() { errs <- sendJoined(conn, d, payload(down, serverSeed)) }()
	go func() { atServer <- receive(d) }()
	requireWhole(t, "server to client", receive(c), down, serverSeed)
	requireWhole(t, "client to server", <-atServer, up, clientSeed)
	took := time.Since(begun)
	require.NoError(t, <-errs)
	require.NoError(t, <-errs)
	got := kernelCounters(t)
	require.Equal(t, 1, got["MPJoinAckRx"]+got["MPJoinSynAckRx"]-before["MPJoinAckRx"]-before["MPJoinSynAckRx"])
	requireNoFaults(t, got)
	t.Logf("%.2f s of %.2f", took.Seconds(), s.limit().Seconds())
	return took <= s.limit()
}
