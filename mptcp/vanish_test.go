package mptcp_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/link"
	"github.com/gomptcp/gomptcp/internal/wire"
	"github.com/gomptcp/gomptcp/mptcp"
)

// Boxes on both links begin and end to remove options while connections are
// opened, subflows join and bytes flow, all at once. What arrives is what was
// sent, as far as it goes, no call hangs and nothing is left. (With the race
// detector: nor does a fallback touch what a join has in hand.)
func TestEchoesWhereOptionsVanish(t *testing.T) {
	var whole, fallbacks, joins int
	for seed := range uint64(6) {
		links := []link.Config{{Rate: 20e6, Delay: 5 * time.Millisecond}, {Rate: 20e6, Delay: 8 * time.Millisecond}}
		inBubble(t, setup{links: links}, func(p *pair) {
			rng := rand.New(rand.NewPCG(seed, 1))
			var strips [2]atomic.Bool
			for i, l := range p.links {
				l.SetFilter(func(seg *wire.Segment) bool { return !strips[i].Load() || stripMPTCP(seg) })
			}
			go echoAll(p.listen())
			const n = 12
			results := make(chan error, n)
			for i := range n {
				go func() { results <- p.echoSome(pattern(40_000 + i)) }()
				time.Sleep(time.Duration(rng.IntN(10)) * time.Millisecond)
				l := &strips[rng.IntN(2)]
				l.Store(!l.Load())
			}
			for i := range strips {
				strips[i].Store(false)
			}
			for range n {
				err := <-results
				require.NotErrorIs(p, err, errWrongBytes)
				if err == nil {
					whole++
				}
			}
			settle(5 * time.Minute)
			for _, end := range []*mptcp.Stack{p.client.Stack, p.server.Stack} {
				counters := end.Counters()
				require.Zero(p, counters.Conns)
				joins += int(counters.Joined)
				fallbacks += int(counters.MIB["MPCapableFallbackACK"] + counters.MIB["MPCapableFallbackSYNACK"])
			}
		})
	}
	t.Logf("%d whole, %d fallbacks, %d joins", whole, fallbacks, joins)
	require.NotZero(t, whole)
	require.NotZero(t, fallbacks)
	require.NotZero(t, joins)
}

var errWrongBytes = errors.New("not the bytes that were sent")

// echoSome has the server send want back, adding and removing subflows
// meanwhile. What came until an error is a part of it.
func (p *pair) echoSome(want []byte) error {
	raw, err := p.client.Dial("mptcp", p.target().String())
	if err != nil {
		return err
	}
	c := raw.(*mptcp.Conn)
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	go func() {
		c.Write(want)
		c.CloseWrite()
	}()
	go func() {
		for range 3 {
			id, err := c.AddSubflow(p.Context(), mptcp.SubflowConfig{Backup: true})
			if err != nil {
				return
			}
			c.SetBackup(id, false)
			c.RemoveSubflow(id)
		}
	}()
	got, err := io.ReadAll(c)
	switch {
	case !bytes.HasPrefix(want, got):
		return errWrongBytes
	case err == nil && len(got) < len(want):
		return fmt.Errorf("%w: %d of %d", errWrongBytes, len(got), len(want))
	}
	return err
}
