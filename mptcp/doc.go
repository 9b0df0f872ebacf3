// Package mptcp gives Multipath TCP v1 (RFC 8684) connections to Go programs
// as net.Conn and net.Listener.
//
// A Stack is a host of its own: it has addresses, ports, connections and
// listeners, and does not use those of the operating system. It exchanges TCP
// packets with a Network, which an adapter supplies; package netstack has one
// that embeds gVisor's IP layer and gives hosts with links in process or on a
// TUN device, and most programs start there:
//
//	host, err := netstack.New(netstack.Config{})
//	// host.AddLink(...) for each link
//	conn, err := host.Dial("mptcp", "192.0.2.1:443")
//
// Dialer and ListenConfig have the options that Dial and Listen have not.
// Where a func of the type of net.Dialer's DialContext, or a net.Listener, is
// asked for, theirs fit: http.Transport, http.Server, tls.Client and tls.Server
// need nothing else.
//
// A connection begins with one subflow, and its path manager opens more as
// soon as both sides have proved that they speak MPTCP. Each subflow has its
// own congestion control; a scheduler decides which carries the next bytes.
// Data that a failing subflow carried is sent again on the others, so that the
// connection lives as long as one path works, and for Config.OrphanTimeout
// without any. With a peer, or through a box on the way, that knows no MPTCP a
// connection is plain TCP; that is no error: Conn.Info says so.
//
// Config.FastOpen takes part in TCP Fast Open (RFC 7413): the first bytes of a
// connection go along with its SYN.
//
// # Security
//
// Who cannot see a connection's packets cannot harm it by forging some:
// sequence numbers, keys and tokens are hard to guess, MPTCP's signals count
// only in segments that pass TCP's checks (RFC 9293, RFC 5961), joins and
// announced addresses are proved by HMAC, and what peers can make a Stack
// remember is bounded. A flood of SYNs is answered by SYN cookies, which carry
// MPTCP; Stack.Counters tells of all that was refused.
//
// Who sees packets is another matter. MPTCP neither encrypts nor
// authenticates data, and the keys of a connection cross the network in the
// clear when it begins: whoever reads that first handshake can join the
// connection, announce addresses, or close it, from anywhere and for as long as
// it lives. Who reads only a later subflow's handshake learns no key. A box on
// a path can read, change and drop what passes there; DSS checksums
// (Config.Checksum) detect accidents, not intent. It can also remove MPTCP's
// options and so reduce a connection to plain TCP: Config.Fallback can refuse
// that. Tokens and IDs of addresses let an observer tell that subflows belong
// together. For secrecy and integrity use TLS over a Conn.
//
// What *net.TCPConn has and Conn lacks is what needs a file descriptor:
// SyscallConn, File and buffer sizes that change. As with any net.Conn, a Read
// takes what it returns and waits for one byte at most: there is no way to look at
// bytes and leave them, or to wait for a whole buffer of them, and so none to spin
// over bytes that stay.
package mptcp
