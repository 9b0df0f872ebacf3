package qlog_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/mptcp"
	"github.com/gomptcp/gomptcp/mptcp/qlog"
)

// records splits a JSON text sequence.
func records(t *testing.T, b []byte) []map[string]any {
	t.Helper()
	var all []map[string]any
	for i, r := range bytes.Split(b, []byte{0x1e}) {
		if i == 0 {
			require.Empty(t, r, "a record begins with RS")
			continue
		}
		require.True(t, bytes.HasSuffix(r, []byte("\n")), "and ends with a newline")
		var m map[string]any
		require.NoError(t, json.Unmarshal(r, &m), "%s", r)
		all = append(all, m)
	}
	return all
}

func TestTraceIsAJSONTextSequence(t *testing.T) {
	var out bytes.Buffer
	now := 1500 * time.Microsecond
	w := qlog.New(&out, qlog.Config{
		Title: `a "title"`, VantagePoint: "client",
		Reference: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), Clock: func() time.Duration { return now },
	})
	a, b := netip.MustParseAddrPort("10.0.0.1:5000"), netip.MustParseAddrPort("[fd00::2]:80")
	conn := mptcp.ConnEvent{Local: a, Remote: b, MPTCP: true}
	tr := w.Trace()
	tr.Connected(conn)
	tr.SubflowUp(mptcp.SubflowEvent{Conn: conn, ID: 1, Local: a, Remote: b})
	tr.SegmentSent(mptcp.SegmentInfo{Conn: conn, Subflow: 1, Src: a, Dst: b, Seq: 7, Ack: 8, Flags: 0x18, Len: 100, Offset: 0, DataAck: -1})
	tr.SegmentReceived(mptcp.SegmentInfo{Conn: conn, Subflow: -1, Src: b, Dst: a, Flags: 0x10, Offset: -1, DataAck: 100})
	tr.Placed(mptcp.Placement{Conn: conn, Subflow: 1, Offset: 5, Len: 6, Reason: "lowest RTT"})
	tr.Placed(mptcp.Placement{Conn: conn, Subflow: 0, Offset: 5, Len: 6, Again: true})
	tr.Metrics(mptcp.Metrics{Conn: conn, Subflow: 1, Cwnd: 14600, SRTT: 20500 * time.Microsecond, DeliveryRate: 1e6})
	tr.JoinStopped(mptcp.SubflowEvent{Conn: conn, ID: -1, Remote: b, Reason: "most subflows"})
	conn.Reason = "line 1\nline \"2\""
	tr.Fallback(conn)
	tr.Closed(conn)
	require.NoError(t, w.Flush())

	all := records(t, out.Bytes())
	require.Len(t, all, 11)
	head := all[0]
	require.Equal(t, "urn:ietf:params:qlog:file:sequential", head["file_schema"])
	require.Equal(t, `a "title"`, head["title"])
	trace := head["trace"].(map[string]any)
	require.Equal(t, map[string]any{"type": "client"}, trace["vantage_point"])
	require.Equal(t, "2026-11-30T12:00:00Z", trace["common_fields"].(map[string]any)["reference_time"].(map[string]any)["epoch"])

	var names []string
	for _, r := range all[1:] {
		require.InDelta(t, 1.5, r["time"], 1e-9)
		require.Equal(t, "10.0.0.1:5000>[fd00::2]:80", r["group_id"])
		names = append(names, r["name"].(string))
	}
	require.Equal(t, []string{
		"mptcp:connection_state", "mptcp:subflow_state", "mptcp:segment_sent", "mptcp:segment_received",
		"mptcp:scheduler_pick", "mptcp:reinjection", "mptcp:cc_metrics", "mptcp:join_stopped", "mptcp:fallback", "mptcp:connection_state",
	}, names)
	require.Equal(t, map[string]any{
		"src": "10.0.0.1:5000", "dst": "[fd00::2]:80", "seq": 7.0, "ack": 8.0, "flags": "PA", "len": 100.0, "offset": 0.0,
	}, all[3]["data"])
	require.Equal(t, "1", all[3]["path_id"])
	require.NotContains(t, all[4], "path_id")
	require.Equal(t, map[string]any{"cwnd": 14600.0, "in_flight": 0.0, "srtt": 20.5, "delivery_rate": 1e6}, all[7]["data"])
	require.Equal(t, map[string]any{"local": "-", "remote": "[fd00::2]:80", "reason": "most subflows"}, all[8]["data"])
	require.Equal(t, map[string]any{"reason": "line 1\nline \"2\""}, all[9]["data"])
}

// broken fails every write.
type broken struct{}

var errDisk = errors.New("disk full")

func (broken) Write([]byte) (int, error) { return 0, errDisk }

func TestFirstErrorIsKept(t *testing.T) {
	w := qlog.New(broken{}, qlog.Config{})
	for range 10000 {
		w.Trace().Closed(mptcp.ConnEvent{})
	}
	require.ErrorIs(t, w.Flush(), errDisk)
	require.ErrorIs(t, w.Flush(), errDisk)
}
