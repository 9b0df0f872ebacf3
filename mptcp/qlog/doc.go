// Package qlog writes the life of connections to a file: a JSON text sequence
// (RFC 7464) in the frame of qlog's main schema, one event a line. Set
// [Writer.Trace] as the Trace of an mptcp.Config.
//
// Events are those of a schema of our own, mptcp-00. Every event has a time in
// milliseconds since the reference time of the file, a name, a group_id (the
// connection, by the addresses of its first subflow) and data:
//
//	name                      path_id  data
//	mptcp:connection_state             state: connected, closed; mptcp; reason
//	mptcp:fallback                     reason
//	mptcp:subflow_state       yes      state: up, lost; local, remote, reason
//	mptcp:join_stopped                 local, remote, reason: the limit
//	mptcp:segment_sent        yes      src, dst, seq, ack, flags, len, offset, data_ack
//	mptcp:segment_received    yes      the same
//	mptcp:scheduler_pick      yes      offset, len, reason
//	mptcp:reinjection         yes      the same: another subflow carried it before
//	mptcp:cc_metrics          yes      cwnd, in_flight, srtt, rttvar, min_rtt (ms), pacing_rate, delivery_rate (bytes/s)
//
// path_id is the number of the subflow; segments of none lack it. offset counts
// bytes of the sender's stream from 0, and data_ack those of the receiver's that
// are acknowledged at the data level; seq and ack are as in the TCP header. What
// is not known is left out. SYN, FIN and RST segments have a member text with
// all options.
//
// The command examples/traceview makes a page of the files of both ends.
package qlog
