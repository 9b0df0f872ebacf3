package mptcp_test

import (
	"bytes"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/mptcp"
	"github.com/gomptcp/gomptcp/scheduler"
)

// Every decision can be traced, with the policy's reason, also after the
// policy was changed.
func TestTraceTellsDecisions(t *testing.T) {
	type decision struct {
		subflows string
		offset   int64
		reason   string
	}
	var all []decision
	cfg := &mptcp.Config{Trace: &mptcp.Trace{Scheduled: func(e mptcp.DecisionEvent) {
		var ids strings.Builder
		for _, id := range e.Subflows {
			ids.WriteByte('0' + byte(id))
		}
		all = append(all, decision{ids.String(), e.Offset, e.Reason})
		require.Equal(t, uint16(serverPort), e.Conn.Remote.Port())
	}}}
	inBubble(t, setup{client: cfg, links: twoLinks}, func(p *pair) {
		client, server := p.connect()
		p.exchange(client, server)
		settle(time.Second)
		begin := int64(client.Info().BytesAcked)
		all = nil
		require.NoError(p, client.SetScheduler(func() scheduler.Scheduler {
			return scheduler.Func(func(v *scheduler.View) scheduler.Decision {
				if v.Ask == scheduler.Spare {
					return scheduler.Decision{Wait: true, Reason: "enough"}
				}
				return scheduler.Decision{Send: 0b11, Reason: "on both"}
			})
		}))
		p.transfer(client, server, pattern(100))
		settle(time.Second)
		require.Equal(p, decision{"01", begin, "on both"}, all[0])
		require.Contains(p, all, decision{"", begin, "enough"})
	})
}

// The size of a flow is what was declared, otherwise what readers know.
func TestFlowSize(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, pattern(3000), 0o600))
	var size, hint int64
	watch := func() scheduler.Scheduler {
		return scheduler.Func(func(v *scheduler.View) scheduler.Decision {
			size, hint = v.FlowSize, v.Hint
			return scheduler.LeastRTT(v)
		})
	}
	inBubble(t, setup{client: &mptcp.Config{Scheduler: watch}}, func(p *pair) {
		client, server := p.connect()
		go io.Copy(io.Discard, server)
		send := func(r io.Reader, most, want int64) {
			_, err := io.Copy(client, r)
			require.NoError(p, err)
			settle(time.Second)
			require.Equal(p, want, size)
			require.LessOrEqual(p, client.Info().BytesAcked, uint64(most))
		}
		send(struct{ io.Reader }{strings.NewReader("abc")}, 3, 0)
		send(io.LimitReader(struct{ io.Reader }{bytes.NewReader(pattern(500))}, 500), 503, 503)
		send(io.LimitReader(bytes.NewReader(pattern(1000)), 5000), 1503, 1503)
		f, err := os.Open(file)
		require.NoError(p, err)
		defer f.Close()
		_, err = f.Seek(1000, io.SeekStart)
		require.NoError(p, err)
		send(f, 3503, 3503)
		send(io.LimitReader(bytes.NewBuffer(pattern(10)), math.MaxInt64), 3513, 3513)

		require.NoError(p, client.SetFlowSize(1<<40))
		require.NoError(p, client.SetSchedulerHint(42))
		send(io.LimitReader(strings.NewReader("declared"), 8), 3521, 1<<40)
		require.Equal(p, int64(42), hint)
		require.NoError(p, client.SetFlowSize(0))
		_, err = client.ReadFrom(strings.NewReader("not any more"))
		require.NoError(p, err)
		settle(time.Second)
		require.Equal(p, int64(3533), size)
	})
	inBubble(t, setup{client: &mptcp.Config{Scheduler: watch}}, func(p *pair) {
		p.listen()
		d := mptcp.Dialer{Stack: p.client.Stack, FlowSize: 4711}
		client, err := d.DialContext(p.Context(), "mptcp", p.target().String())
		require.NoError(p, err)
		p.conns = append(p.conns, client.(*mptcp.Conn))
		_, err = io.Copy(client, strings.NewReader("dialled with a size"))
		require.NoError(p, err)
		require.Equal(p, int64(4711), size)
	})
}
