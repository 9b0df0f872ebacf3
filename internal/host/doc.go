// Package host holds the tables that a host needs around its connections:
// which connection or listener a segment belongs to, which ports are taken,
// which tokens are known, which 4-tuples wait out TIME-WAIT, and what has been
// measured on each path. Its Step is the one place that interprets the events
// of a connection, and where the path manager's commands are obeyed.
//
// A Host does no I/O and holds no lock. A driver with several threads calls it
// so:
//
//   - Under the host's lock: Dial, Listen, CloseListener, Lookup, LookupICMP,
//     Listener.Accept, Conns, Deadline, HandleTimeout, PollSegment, Path,
//     Counters.
//   - Under the lock of a connection and then the host's lock: Step, Join,
//     Open, Feed, AddrUp and AddrDown for that connection.
//   - Under the lock of a connection: the methods of Conn.
//
// So Lookup never looks into an existing connection: whatever it must know
// stands in the host's own tables.
package host
