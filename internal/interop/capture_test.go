//go:build linux

package interop

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// malformed is the display filter of what tshark finds wrong with the form of
// a packet, checksums included. (tshark calls a TCP checksum of 0xffff bad,
// which Linux sends where RFC 1624 would say 0.)
const malformed = `_ws.malformed || tcp.checksum.status == "Bad" && !tcp.checksum.ffff || ip.checksum.status == "Bad"` +
	` || tcp.option.len.invalid || tcp.suboption_malformed || tcp.non_zero_bytes_after_eol || tcp.bogus_header_length` +
	` || tcp.short_segment || tcp.options.wscale.shift.invalid || tcp.options.mss.absent || tcp.options.mss.present` +
	` || tcp.ack.nonzero || tcp.urgent_pointer.non_zero`

// suspicious is the display filter of all that tshark's analysis of MPTCP
// warns of.
const suspicious = `mptcp.connection.echoed_key_mismatch || mptcp.connection.missing_algorithm` +
	` || mptcp.connection.unsupported_algorithm || mptcp.dss.infinite_mapping || mptcp.dss.missing_mapping`

// requireCleanCapture lets tshark read what crossed the links: it must see
// joins and mappings, and find nothing wrong. Our host ends before, so that the
// file is whole.
func (r *rig) requireCleanCapture(t *testing.T) {
	t.Helper()
	require.NoError(t, r.host.Close())
	require.NoError(t, r.pcap.Flush())
	requireCleanFile(t, r.capture, len(r.links) > 1)
}

func requireCleanFile(t *testing.T, file string, joins bool) {
	t.Helper()
	const first = "5000" // packets; all handshakes are among them
	require.NotEmpty(t, tshark(t, file, "tcp.options.mptcp.subtype == 0", "-c", first), "MP_CAPABLE in the capture")
	require.NotEmpty(t, tshark(t, file, "mptcp.dss.dsn", "-c", first), "DSS in the capture")
	if joins {
		require.NotEmpty(t, tshark(t, file, "tcp.options.mptcp.subtype == 1", "-c", first), "MP_JOIN in the capture")
	}
	require.Empty(t, tshark(t, file, malformed+" || "+suspicious), "malformed packets, or with MPTCP warnings")
}

// tshark returns the first packets of a capture that a display filter matches,
// a line each.
func tshark(t *testing.T, file, filter string, more ...string) string {
	t.Helper()
	args := []string{
		"-n", "-r", file, "-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE",
		// Payload is not to be guessed at: parts of a stream look malformed.
		"-d", fmt.Sprintf("tcp.port==%d,data", port), "-Y", filter,
	}
	out := run(t, "tshark", append(args, more...)...)
	var lines []string
	for line := range strings.Lines(out) {
		// As root it first says that this is dangerous.
		if !strings.HasPrefix(line, "Running as user") && len(lines) < 20 {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}
