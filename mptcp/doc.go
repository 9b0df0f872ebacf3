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
// Data is sent in the clear and MPTCP's keys are, too: for secrecy use TLS over
// a Conn.
//
// What *net.TCPConn has and Conn lacks is what needs a file descriptor:
// SyscallConn, File and buffer sizes that change.
package mptcp
