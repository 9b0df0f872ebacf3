// Package pathmgr decides which subflows a connection has: pure policies that
// answer events with commands. The driver applies commands; a command that
// can't be obeyed (a limit, no route) is dropped and counted there.
//
// The policies, by name:
//
//   - fullmesh: a subflow between every two addresses;
//   - signal: announces addresses, opens subflows only to announced ones;
//   - ndiffports: several subflows between one pair of addresses;
//   - backup: a full mesh of which one subflow is used and the others stand by;
//   - flowsize: as many of the fastest paths as the size of the flow deserves;
//   - freeway: one link at a time, short flows on other links than long ones;
//   - mptcpd: a full mesh that waits until a flow is long, and gives up subflows
//     that share a link.
//
// All open subflows only on the side that opened the connection, keep the
// limits, try what failed again with growing waits, and bring a connection
// without subflows back when an address comes.
package pathmgr

import (
	"net/netip"
	"time"

	"github.com/gomptcp/gomptcp/internal/reason"
)

// Kind tells events apart.
type Kind uint8

// Events.
const (
	ChooseInitial    Kind = iota + 1 // before a connection exists: choose where it begins
	Established                      // the connection is MPTCP and joins are allowed
	AddrAnnounced                    // the peer announced Remote under RemoteID
	AddrWithdrawn                    // the peer withdrew RemoteID
	LocalAddrUp                      // Local became usable
	LocalAddrDown                    // Local is no longer usable
	SubflowUp                        // a subflow is established: Subflow, Local, Remote, RemoteID
	SubflowLost                      // a subflow ended: the same and Close, Reset, Transient; it is not in the View any more
	PriorityChanged                  // the peer asked by MP_PRIO to use Subflow as backup, or no longer: see its PeerBackup
	DataQueued                       // the Bytes of a Watch were written, or the size of the flow became known
	SharedBottleneck                 // the subflows of Group were found to share a bottleneck; those of one Now are all that do
	Tick                             // the time a policy asked for with Wake has come
)

// Event is something a policy may answer.
type Event struct {
	Kind     Kind
	Now      time.Duration
	Local    netip.Addr
	Remote   netip.AddrPort
	RemoteID uint8
	Subflow  int
	Close    reason.Close
	Reset    reason.Reset
	// Transient says of a SubflowLost by RST that the condition may pass: its
	// MP_TCPRST has the T bit, or it has none, as middleboxes send it.
	Transient bool
	Bytes     int64
	Group     []int // SharedBottleneck: subflow ids
}

// Verb tells commands apart.
type Verb uint8

// Commands.
const (
	OpenSubflow  Verb = iota + 1 // from Local to Remote
	CloseSubflow                 // Subflow, with Reset as the reason code
	AnnounceAddr                 // ADD_ADDR of Local
	WithdrawAddr                 // REMOVE_ADDR of Local
	SetBackup                    // MP_PRIO on Subflow
	Bequeath                     // Heir takes the place of Subflow at their bottleneck, if the congestion control can do that
	Wake                         // send a Tick at At
	Watch                        // send a DataQueued once so many Bytes were written in all
	Measure                      // keep the host's table of paths up to date with this connection's subflows
	Withhold                     // the Limits stop a subflow from Local to Remote, or without Remote the announcement of Local: for the log
)

// Command is what a policy wants done.
type Command struct {
	Verb     Verb
	Local    netip.AddrPort // port 0 = any (OpenSubflow) or that of the connection (AnnounceAddr)
	Remote   netip.AddrPort
	RemoteID uint8
	// Bound is, for AnnounceAddr, the own address to which someone on the way
	// leads what is sent to Local, if that is known and not Local itself.
	Bound   netip.AddrPort
	Subflow int
	Heir    int // Bequeath: a subflow on the same path
	Backup  bool
	Reset   reason.Reset
	At      time.Duration
	Bytes   int64
}

// Local is a usable local address.
type Local struct {
	Addr   netip.Addr
	Link   string // name of the link it belongs to
	Backup bool
}

// Remote is an address of the peer.
type Remote struct {
	ID   uint8
	Addr netip.AddrPort
}

// Subflow is what a policy sees of a subflow.
type Subflow struct {
	ID            int
	Local, Remote netip.AddrPort
	RemoteID      uint8
	Established   bool
	Backup        bool // we asked the peer not to send here, and do not ourselves, unless nothing else works
	PeerBackup    bool // the peer asked us
	Stale         bool // a retransmission timeout is unanswered
	SRTT          time.Duration
	Rate          float64 // bytes/s delivered; 0 unknown
}

// Limits bound what a policy may do.
type Limits struct {
	Subflows int // most subflows of a connection, the first included; 0 = 8
	Accepted int // most addresses of the peer kept, and of ours announced; 0 = 8
}

// View is what a policy sees of its connection, valid during the call only.
type View struct {
	Active   bool // this side opened the connection
	Limits   Limits
	Locals   []Local
	Remotes  []Remote // that may be joined, the initial one (id 0) included unless the peer denied it
	Subflows []Subflow
	Size     int64 // bytes that will be written in all, as far as it is known; 0 = it is not
	Written  int64 // bytes written
	Acked    int64 // bytes acknowledged by the peer
	// Routable reports whether the network can send from local to remote.
	Routable func(local, remote netip.Addr) bool

	// Measured returns what the host knows of a path. nil = nothing.
	Measured func(local, remote netip.Addr) Measurement

	// Shared is for what policies of all connections of the host know
	// together, each under a key of a type of its own, as in a context. It may
	// be nil in a View that no host made.
	Shared map[any]any
}

// Measurement is what is known of a path. Zero values are unknown.
type Measurement struct {
	SRTT time.Duration // smoothed RTT
	Rate float64       // bytes/s delivered
	Age  time.Duration // since it was measured or last tried
}

// Policy answers events. It is made for each connection, called under its
// lock, and must not block.
type Policy interface {
	// Handle appends its commands to cmds and returns the result.
	Handle(v *View, e Event, cmds []Command) []Command
}

// Factory makes the policy of a new connection.
type Factory func() Policy
