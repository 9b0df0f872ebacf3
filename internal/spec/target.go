package spec

import (
	"errors"
	"net/netip"
	"time"

	"github.com/gomptcp/gomptcp/internal/mono"
	"github.com/gomptcp/gomptcp/internal/wire"
)

// Errors of a target's application verbs.
var (
	ErrReset       = errors.New("connection reset")
	ErrTimeout     = errors.New("connection timed out")
	ErrUnsupported = errors.New("the target cannot do that")
)

// Packet is one TCP segment and what its IP header says of it.
type Packet struct {
	Src, Dst netip.Addr
	ECN      wire.ECN
	TCP      []byte // header, options and payload, the checksum in place
	At       mono.Time
}

// Setup is how a target is to be before an item begins.
type Setup struct {
	IPv6     bool
	Addrs    int  // local addresses; 0 = 1
	Mesh     bool // the path manager opens and announces whatever it can
	Checksum bool // ask for DSS checksums
	Plain    bool // do without MPTCP

	// FastCloseByACK has aborts say MP_FASTCLOSE on an ACK, where the target can.
	FastCloseByACK bool

	// FastOpen has listeners take data on SYNs (RFC 7413), where the target
	// can.
	FastOpen bool

	// Repeats has each random number of the target come so many times in a row,
	// where the target can.
	Repeats int

	Subflows   int // most subflows of a connection; 0 = the target's default
	ReadBuffer int // bytes; 0 = the target's default
}

// Target is a stack under test, its network, and the application on it. It is
// used by one goroutine at a time.
type Target interface {
	// Name is what the report calls the target.
	Name() string
	// Virtual reports whether time passes only in Recv and the verbs that
	// wait, so that minutes cost nothing.
	Virtual() bool
	// Addr returns the i-th local address of the target, Peer one that the
	// peer has.
	Addr(i int) netip.Addr
	Peer(i int) netip.Addr

	Now() mono.Time
	// Send gives the target a packet.
	Send(p Packet)
	// Recv returns the next packet that the target sent, as soon as there is
	// one; it reports false if there is none until then.
	Recv(until mono.Time) (Packet, bool)
	// ICMP tells the target that the network could not deliver a packet of
	// its own, whose TCP header is quoted.
	ICMP(quoted Packet, e ICMP) error

	// Listen accepts connections to a port of all local addresses.
	Listen(port uint16) error
	// Accept returns the next connection, waiting for it.
	Accept(within time.Duration) (App, error)
	// Dial begins a connection from the first local address.
	Dial(remote netip.AddrPort) (App, error)
	// SetAddr takes the i-th local address away or gives it back.
	SetAddr(i int, present bool) error
	// Close releases what the target holds.
	Close()
}

// ICMP is what an ICMP error says.
type ICMP uint8

// Kinds of ICMP errors.
const (
	ICMPNet    ICMP = iota // network unreachable: soft
	ICMPHost               // host unreachable: soft
	ICMPTooBig             // fragmentation needed, with icmpMTU
	ICMPQuench             // source quench
)

// icmpMTU is the MTU that ICMPTooBig tells of.
const icmpMTU = 1280

// App is the application's end of a connection of the target.
type App interface {
	// Write queues bytes to be sent. It does not wait.
	Write(p []byte) error
	// Read waits until n bytes or the end of the stream came, or the time is
	// over, and returns what there is: io.EOF at the end, ErrReset and
	// ErrTimeout if the connection broke, nil when the time was over.
	Read(n int, within time.Duration) ([]byte, error)
	CloseWrite() error
	Close() error
	// Abort ends the connection without ceremony.
	Abort() error
	// CloseSubflow closes the subflow to remote, leaving the others.
	CloseSubflow(remote netip.AddrPort) error
}
