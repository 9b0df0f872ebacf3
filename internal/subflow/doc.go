// Package subflow is one TCP connection (RFC 9293) as a machine without I/O:
// client or server, plain TCP or a subflow of MPTCP.
//
// The machine knows nothing of data sequence numbers and holds no payload to
// send. Its user, the connection, tells how many bytes it may send (Push) and
// fills them into the segments that PollSegment hands out, first
// transmissions and retransmissions alike; Range says which bytes. No segment
// crosses the border between two Pushes, so that each carries one mapping.
// Received payload is handed out in order by NextData.
//
// The driver calls HandleSegment, HandleTimeout, HandlePacketTooBig and
// HandleUnreachable with what happens. Any call may make output available:
// afterwards the driver polls segments, then received data, then events, and
// asks for the Deadline of the next HandleTimeout. Calling early or twice is
// harmless. Segments that the connection may act upon are those for which
// HandleSegment returned Accepted.
//
// Losses are found by RACK with tail loss probes (RFC 8985) where SACK is in
// use, and by counting (RFC 5681, 6582, 6675) where it is not. Recovery follows
// PRR (RFC 9937) and is taken back when timestamps (RFC 3522), D-SACK (RFC
// 2883) or what is acknowledged after a timeout (RFC 5682) show it to have been
// needless. ECN (RFC 3168) and pacing are there for the asking.
//
// Sequence numbers are kept as relSSN: 64-bit distances from ISS or IRS, SYN
// at 0 and the first byte of data at 1, which never wrap.
//
// Departures from RFC 9293 beside those noted where they are made: urgent data
// is delivered in line without a signal, payload on a SYN is not kept (the peer
// sends it again), and the security compartment is not checked.
package subflow
