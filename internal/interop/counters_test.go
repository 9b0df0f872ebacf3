//go:build linux

package interop

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// counters are the kernel's MIB counters of this namespace by name. Those
// outside MPTcpExt have their group before the name: TcpExt.TCPTimeouts.
type counters map[string]int

// kernelCounters reads the counters.
func kernelCounters(t *testing.T) counters {
	t.Helper()
	var text []byte
	for _, file := range []string{"/proc/self/net/snmp", "/proc/self/net/netstat"} {
		more, err := os.ReadFile(file)
		require.NoError(t, err)
		text = append(text, more...)
	}
	all := make(counters)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	for i := 0; i+1 < len(lines); i += 2 {
		names, values := strings.Fields(lines[i]), strings.Fields(lines[i+1])
		require.Len(t, values, len(names))
		group := names[0][:len(names[0])-1] + "."
		if group == "MPTcpExt." {
			group = ""
		}
		for j, name := range names[1:] {
			n, err := strconv.Atoi(values[j+1])
			require.NoError(t, err)
			all[group+name] = n
		}
	}
	require.Contains(t, all, "MPCapableSYNRX", "the kernel must count MPTCP")
	return all
}

// faults are parts of the names of the counters that show that the kernel
// disliked something: checksums, HMACs, mappings, fallbacks.
var faults = []string{
	"Csum", "HMacFailure", "DSSNotMatching", "DSSNoMatchTCP", "DSSCorruption", "NoDSSInWindow", "Fallback",
	"MPFail", "InfiniteMap", "NoTokenFound", "MPJoinRejected", "MismatchPort", "MPCapableSYNTXDrop", "Blackhole",
}

// requireNoFaults checks that the kernel found nothing wrong.
func requireNoFaults(t *testing.T, got counters) {
	t.Helper()
	require.Zero(t, got["Tcp.InCsumErrors"], "TCP checksum errors at the kernel")
	for name, n := range got {
		for _, part := range faults {
			if n != 0 && strings.Contains(name, part) && !strings.Contains(name, ".") {
				t.Errorf("kernel counter %s is %d, want 0", name, n)
			}
		}
	}
}

// logCounters shows the counters of MPTCP that moved.
func logCounters(t *testing.T, got counters) {
	t.Helper()
	var b strings.Builder
	for _, name := range []string{
		"MPCapableSYNRX", "MPCapableSYNTX", "MPCapableSYNACKRX", "MPCapableACKRX", "MPJoinSynTx", "MPJoinSynRx",
		"MPJoinSynAckRx", "MPJoinAckRx", "AddAddr", "AddAddrTx", "EchoAdd", "EchoAddTx", "MPTCPRetrans", "DuplicateData",
		"MPFastcloseTx", "MPFastcloseRx", "MPRstTx", "MPRstRx", "RmAddr", "SubflowStale", "Tcp.RetransSegs", "TcpExt.TCPTimeouts", "TcpExt.TCPLostRetransmit",
		"TcpExt.TCPDSACKOldSent", "TcpExt.TCPDSACKOfoSent", "TcpExt.TCPDSACKRecv",
	} {
		if got[name] != 0 {
			b.WriteString(" " + name + "=" + strconv.Itoa(got[name]))
		}
	}
	t.Log("kernel counters:" + b.String())
}
