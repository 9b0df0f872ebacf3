package mptcp_test

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gomptcp/gomptcp/internal/host"
	"github.com/gomptcp/gomptcp/internal/reason"
	"github.com/gomptcp/gomptcp/mptcp"
)

var errnos = []error{
	syscall.ECONNRESET, syscall.ECONNREFUSED, syscall.ETIMEDOUT, syscall.EHOSTUNREACH, os.ErrDeadlineExceeded, net.ErrClosed,
}

// requireOnly checks that err, wrapped as a caller sees it, matches want and
// nothing else.
func requireOnly(t *testing.T, err, want error, timeout bool) {
	t.Helper()
	wrapped := &net.OpError{Op: "read", Net: "mptcp", Err: err}
	require.Equal(t, timeout, wrapped.Timeout(), "%v", err)
	for _, e := range errnos {
		require.Equal(t, e == want, errors.Is(wrapped, e), "%v is %v", err, e)
	}
}

func TestEveryEndHasAnError(t *testing.T) {
	for r, tt := range map[reason.Close]struct {
		opening, established error
		timeout              bool
	}{
		reason.CloseRemoteReset: {syscall.ECONNRESET, syscall.ECONNRESET, false},
		reason.CloseLocalReset:  {syscall.ECONNRESET, syscall.ECONNRESET, false},
		reason.CloseFastClose:   {syscall.ECONNRESET, syscall.ECONNRESET, false},
		reason.CloseCommand:     {syscall.ECONNRESET, syscall.ECONNRESET, false},
		reason.CloseRefused:     {syscall.ECONNREFUSED, syscall.ECONNRESET, false},
		reason.CloseHandshake:   {syscall.ECONNREFUSED, syscall.ECONNRESET, false},
		reason.CloseTimeout:     {syscall.ETIMEDOUT, syscall.ETIMEDOUT, true},
		reason.CloseKeepalive:   {syscall.ETIMEDOUT, syscall.ETIMEDOUT, true},
		reason.CloseOrphan:      {syscall.ETIMEDOUT, syscall.ETIMEDOUT, true},
		reason.CloseAddressGone: {syscall.ETIMEDOUT, syscall.ETIMEDOUT, true},
		reason.CloseUnreachable: {syscall.EHOSTUNREACH, syscall.EHOSTUNREACH, false},
	} {
		t.Run(r.String(), func(t *testing.T) {
			requireOnly(t, mptcp.ConnError(r, reason.ResetUnspecified, false), tt.opening, tt.timeout)
			requireOnly(t, mptcp.ConnError(r, reason.ResetUnspecified, true), tt.established, tt.timeout)
		})
	}
	require.NoError(t, mptcp.CloseError(reason.CloseDone, 0))
	for r := range reason.NumCloses {
		if r != reason.CloseNone && r != reason.CloseDone {
			require.Error(t, mptcp.CloseError(r, 0), r)
		}
	}
}

func TestResetErrorSaysWhoAndWhy(t *testing.T) {
	err := mptcp.CloseError(reason.CloseRemoteReset, reason.ResetMiddlebox)
	require.Equal(t, &mptcp.ResetError{Remote: true, Code: 6}, err)
	require.EqualError(t, err, "connection reset by peer: middlebox interference")
	require.EqualError(t, mptcp.CloseError(reason.CloseLocalReset, 0), "connection reset locally")
}

func TestErrorsOfTheHost(t *testing.T) {
	for from, to := range map[error]error{
		host.ErrNoRoute:   syscall.ENETUNREACH,
		host.ErrNoPort:    syscall.EADDRNOTAVAIL,
		host.ErrAddrInUse: syscall.EADDRINUSE,
		host.ErrNotOpened: mptcp.ErrLimit,
		io.ErrNoProgress:  io.ErrNoProgress,
	} {
		require.Equal(t, to, mptcp.HostError(from))
	}
}
