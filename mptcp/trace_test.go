package mptcp_test

import (
	"bytes"
	"log/slog"
	"net"
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
