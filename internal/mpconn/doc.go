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
// senddata.go takes it, schedule.go picks the subflow, mapping.go binds it to
// the subflow's sequence space, poll.go puts it into a segment. The way of a
// received byte: recvdata.go finds its mapping and its place.
package mpconn
