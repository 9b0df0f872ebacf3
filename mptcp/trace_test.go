package mptcp_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/mptcp"
)

func TestTraceTellsTheStory(t *testing.T) {
	var story []string
	tell := func(s string) func(mptcp.ConnEvent) {
		return func(e mptcp.ConnEvent) { story = append(story, s+" "+e.Reason) }
	}
	segments := 0
	cfg := &mptcp.Config{Trace: &mptcp.Trace{
		Connected: tell("connected"), Closed: tell("closed"), Fallback: tell("fallback"),
		SubflowUp:       func(e mptcp.SubflowEvent) { story = append(story, "up "+e.Local.Addr().String()) },
		SubflowLost:     func(e mptcp.SubflowEvent) { story = append(story, "lost "+e.Local.Addr().String()+" "+e.Reason) },
		SegmentSent:     func(s mptcp.SegmentInfo) { segments += len(s.String()) },
		SegmentReceived: func(s mptcp.SegmentInfo) { segments += len(s.String()) },
	}}
	inBubble(t, setup{client: cfg, links: twoLinks}, func(p *pair) {
		client, server := p.connect()
		p.exchange(client, server)
		settle(time.Second)
		require.NoError(p, client.Close())
		require.NoError(p, server.Close())
		settle(time.Minute)
	})
	require.Equal(t, []string{"connected ", "up 10.0.0.1", "up 10.0.1.1"}, story[:3])
	require.Equal(t, "closed closed", story[len(story)-1])
	require.Len(t, story, 6)
	require.NotZero(t, segments)
}

func TestLogger(t *testing.T) {
	story := func(level slog.Level, client, server *mptcp.Config) []string {
		var out bytes.Buffer
		client.Logger = slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{
			Level: level,
			ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					return slog.Attr{}
				}
				return a
			},
		}))
		inBubble(t, setup{client: client, server: server}, func(p *pair) {
			p.listen()
			d := mptcp.Dialer{Stack: p.client.Stack, LocalAddr: &net.TCPAddr{Port: 5000}}
			c, err := d.Dial("mptcp", p.target().String())
			require.NoError(p, err)
			require.NoError(p, c.(*mptcp.Conn).SetLinger(0))
			require.NoError(p, c.Close())
			settle(time.Second)
		})
		return strings.Split(strings.TrimSpace(out.String()), "\n")
	}
	const from = " local=10.0.0.1:5000 remote=10.0.0.2:80"
	require.Equal(t, []string{
		"level=INFO msg=connected" + from + " mptcp=true",
		"level=DEBUG msg=\"subflow up\"" + from + " subflow=0 from=10.0.0.1:5000 to=10.0.0.2:80 reason=\"\"",
		"level=DEBUG msg=\"subflow lost\"" + from + " subflow=0 from=10.0.0.1:5000 to=10.0.0.2:80 reason=\"reset locally\"",
		"level=INFO msg=closed" + from + " mptcp=true reason=\"reset locally\"",
	}, story(slog.LevelDebug, &mptcp.Config{}, nil))
	require.Equal(t, []string{
		"level=WARN msg=\"fell back to plain tcp\"" + from + " mptcp=false reason=\"peer's syn/ack without mp_capable\"",
	}, story(slog.LevelWarn, &mptcp.Config{}, &mptcp.Config{Plain: true}))
}

// The log and the trace name the limit that stops a join, on the side that has
// it: here the server lets the client have one of its four subflows.
func TestLimitsAreLogged(t *testing.T) {
	var out bytes.Buffer
	var traced []mptcp.SubflowEvent
	server := &mptcp.Config{
		MaxSubflows: 1,
		Logger:      slog.New(slog.NewTextHandler(&out, nil)),
		Trace:       &mptcp.Trace{JoinStopped: func(e mptcp.SubflowEvent) { traced = append(traced, e) }},
	}
	inBubble(t, setup{server: server, links: twoLinks}, func(p *pair) {
		client, server := p.connect()
		p.exchange(client, server)
		settle(5 * time.Second)
		require.Equal(p, map[string]uint64{"most subflows": 1}, p.server.Counters().JoinsStopped)
		require.Empty(p, p.client.Counters().JoinsStopped)
	})
	require.Len(t, traced, 1)
	require.Equal(t, -1, traced[0].ID)
	require.Equal(t, "most subflows", traced[0].Reason)
	require.Equal(t, clientAddr(1), traced[0].Remote.Addr())
	require.Contains(t, out.String(), "level=INFO msg=\"join stopped by a limit\"")
	require.Contains(t, out.String(), "reason=\"most subflows\"")
}

// What a trace says of offsets and placements must add up to the streams.
func TestTraceLocatesEveryByte(t *testing.T) {
	const size = 100_000
	sent, got, placed := make([]int, size), make([]int, size), make([]int, size)
	cover := func(n []int, off int64, length int) {
		for i := range length {
			n[off+int64(i)]++
		}
	}
	acked, metrics := int64(0), 0
	client := &mptcp.Config{Trace: &mptcp.Trace{
		SegmentSent: func(s mptcp.SegmentInfo) {
			if s.Len > 0 {
				require.GreaterOrEqual(t, s.Offset, int64(0))
				cover(sent, s.Offset, s.Len)
			}
		},
		SegmentReceived: func(s mptcp.SegmentInfo) { acked = max(acked, s.DataAck) },
		Placed: func(p mptcp.Placement) {
			require.False(t, p.Again)
			cover(placed, int64(p.Offset), p.Len)
		},
		Metrics: func(m mptcp.Metrics) {
			metrics++
			require.Positive(t, m.Cwnd)
			require.Positive(t, m.SRTT)
		},
	}}
	server := &mptcp.Config{Trace: &mptcp.Trace{
		SegmentReceived: func(s mptcp.SegmentInfo) {
			if s.Len > 0 && s.Offset >= 0 {
				cover(got, s.Offset, s.Len)
			}
		},
	}}
	inBubble(t, setup{client: client, server: server, links: twoLinks}, func(p *pair) {
		c, s := p.connect()
		settle(time.Second)
		_, err := c.Write(make([]byte, size))
		require.NoError(p, err)
		_, err = io.ReadFull(s, make([]byte, size))
		require.NoError(p, err)
		settle(time.Second)
		require.NoError(p, c.Close())
		require.NoError(p, s.Close())
		settle(time.Minute)
	})
	require.NotZero(t, metrics)
	require.GreaterOrEqual(t, acked, int64(size))
	unknown := 0
	for i := range size {
		require.Equal(t, 1, placed[i], "byte %d", i)
		require.Equal(t, 1, sent[i], "byte %d", i)
		if got[i] == 0 {
			unknown++
		}
	}
	require.Less(t, unknown, 1500, "the receiver does not know the place of the first segment, whose option has no DSN")
}

// What the peer says of its addresses and of priorities, in the order of its
// saying so: Linux's events ANNOUNCED, SUB_PRIORITY and REMOVED.
func TestTraceTellsOfAddresses(t *testing.T) {
	var story []string
	tell := func(what string) func(mptcp.SubflowEvent) {
		return func(e mptcp.SubflowEvent) {
			story = append(story, strings.TrimSpace(fmt.Sprintf("%s %d %v %s", what, e.ID, e.Remote, e.Reason)))
		}
	}
	cfg := &mptcp.Config{Trace: &mptcp.Trace{
		AddrAnnounced: tell("announced"), AddrWithdrawn: tell("withdrawn"), SubflowPriority: tell("priority"),
	}}
	signal, err := mptcp.PathManagerByName("signal")
	require.NoError(t, err)
	server := &mptcp.Config{PathManager: signal}
	inBubble(t, setup{client: cfg, server: server, links: twoLinks}, func(p *pair) {
		c, s := p.connect()
		p.exchange(c, s)
		settle(time.Second)
		require.NoError(p, s.SetBackup(1, true))
		settle(time.Second)
		require.NoError(p, s.SetBackup(1, false))
		settle(time.Second)
		p.links[1].Unplug() // of which each side tells the other
		settle(time.Minute)
	})
	port := strconv.Itoa(int(serverPort))
	require.Equal(t, []string{
		"announced -1 10.0.1.2:" + port, "priority 1 10.0.1.2:" + port + " backup", "priority 1 10.0.1.2:" + port + " regular",
		"withdrawn -1 10.0.1.2:" + port,
	}, story)
}
