// Package mpconn is one MPTCP connection (RFC 8684) over any number of
// subflows, as a state machine without clocks, locks or sockets. Plain TCP is
// the same machine with one subflow and no options: a connection begins that
// way when configured, and ends up that way after a fallback.
//
// A driver feeds it with segments (HandleSegment, HandleJoin), time
// (HandleTimeout), user calls (Write, Read, CloseWrite, Close, Abort) and
// commands (Open, CloseSubflow, SetBackup, Announce, Withdraw). After any of
// them it polls, in this order, PollSegment until it returns false, PollEvent
// until it returns false, and Deadline. Calling HandleTimeout early, or any
// poll twice, is harmless.
//
// Data is addressed by its offset in the connection's stream; data sequence
// numbers exist on the wire only (see space). The way of a written byte:
// senddata.go takes it, schedule.go asks which subflow it goes to, of those that
// view.go shows, give.go gives it to that one, mapping.go binds it to the subflow's
// sequence space, poll.go puts it into a segment. The way of a received byte:
// recvdata.go finds its mapping and its place, held.go keeps it until the mapping
// is there and, with checksums, verified. What may be lost is sent again on another
// subflow (reinject.go), and a DATA_ACK that stays out is asked for (overdue.go).
// Bytes that go along with a SYN have an offset but no data sequence number
// (fastopen.go).
//
// Falling back to plain TCP (fallback.go for lost options, fail.go for failed
// checksums) is one decision: whether it is still allowed, the end of joins
// under way and the refusal of new ones are settled within one call, and calls
// do not overlap. So no subflow can come up between a look at the connection and
// what is done about it, whatever the order in which segments arrive. A Conn is
// made for one connection and never used again, so that no state of an earlier
// one, of a fallback or of a subflow, can shine through; and it has no workers
// or timers of its own that could outlive it.
package mpconn
