package host

// MIB is a counter that means what Linux's of the same name does: those of
// MPTCP in /proc/net/netstat under MPTcpExt, those of SYN cookies under
// TcpExt.
type MIB uint8

// Counters by the kernel's names.
const (
	MIBMPFallbackTokenInit MIB = iota // connections without MPTCP for want of a unique key
	MIBSyncookiesSent
	MIBSyncookiesRecv
	MIBSyncookiesFailed
	NumMIBs
)

var mibNames = [NumMIBs]string{
	"MPFallbackTokenInit", "SyncookiesSent", "SyncookiesRecv", "SyncookiesFailed",
}

// String returns the kernel's name.
func (m MIB) String() string { return mibNames[m] }

func (h *Host) count(m MIB) { h.counters.MIB[m]++ }
