package mptcp

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"

	"github.com/gomptcp/gomptcp/internal/reason"
)

// Errors of Dialer, ListenConfig and Conn that have no counterpart in net.
// Those of a Conn come wrapped in a *net.OpError: compare with errors.Is.
var (
	// ErrNoStack means that a Dialer or ListenConfig has no Stack.
	ErrNoStack = errors.New("no stack set")

	// ErrFallback means that the operation needs MPTCP and the connection is
	// plain TCP. Info says why it is.
	ErrFallback = errors.New("connection is plain tcp")

	// ErrNoSubflow means that the connection has no live subflow of that ID.
	ErrNoSubflow = errors.New("no such subflow")

	// ErrLimit means that the connection takes no further subflow: it has as
	// many as it may have, or is being closed.
	ErrLimit = errors.New("no further subflow allowed")
)

// ResetError means that a connection was torn down before it was closed in
// order. It matches syscall.ECONNRESET.
type ResetError struct {
	Remote bool  // the peer did it
	Code   uint8 // reason code of MP_TCPRST (RFC 8684, Section 3.6); 0 = unspecified
}

func (e *ResetError) Error() string {
	s := "connection reset locally"
	if e.Remote {
		s = "connection reset by peer"
	}
	if e.Code != 0 {
		s += ": " + reason.Reset(e.Code).String()
	}
	return s
}

// Is reports whether target is syscall.ECONNRESET.
func (e *ResetError) Is(target error) bool { return target == syscall.ECONNRESET }

// HandshakeError means that the peer refused the connection. It matches
// syscall.ECONNREFUSED.
type HandshakeError struct{ Reason string }

func (e *HandshakeError) Error() string { return "connection refused: " + e.Reason }

// Is reports whether target is syscall.ECONNREFUSED.
func (e *HandshakeError) Is(target error) bool { return target == syscall.ECONNREFUSED }

// TimeoutError means that the peer stopped answering and the connection was
// given up. It matches syscall.ETIMEDOUT.
type TimeoutError struct{ Reason string }

func (e *TimeoutError) Error() string { return "connection timed out: " + e.Reason }

// Is reports whether target is syscall.ETIMEDOUT.
func (e *TimeoutError) Is(target error) bool { return target == syscall.ETIMEDOUT }

// Timeout makes the error a net.Error's timeout.
func (e *TimeoutError) Timeout() bool { return true }

// closeError returns the error of a connection that ended with r. code is the
// reason code that came or went with a reset. It is nil for a connection that
// both sides closed in order.
func closeError(r reason.Close, code reason.Reset) error {
	switch r {
	case reason.CloseNone, reason.CloseDone:
		return nil
	case reason.CloseRemoteReset, reason.CloseFastClose:
		return &ResetError{Remote: true, Code: uint8(code)}
	case reason.CloseRefused, reason.CloseHandshake:
		return &HandshakeError{Reason: r.String()}
	case reason.CloseTimeout, reason.CloseKeepalive, reason.CloseOrphan, reason.CloseAddressGone:
		return &TimeoutError{Reason: r.String()}
	case reason.CloseUnreachable:
		return syscall.EHOSTUNREACH
	default:
		return &ResetError{Code: uint8(code)}
	}
}

// connError returns the error of a connection that ended with r. Once it was
// established, a peer that refuses to take it up again has dropped it.
func connError(r reason.Close, code reason.Reset, established bool) error {
	err := closeError(r, code)
	if _, refused := err.(*HandshakeError); refused && established {
		return &ResetError{Remote: true, Code: uint8(code)}
	}
	return err
}

// opError wraps err once for the caller of op. io.EOF stays bare, as readers
// compare it by value.
func opError(op string, source, addr net.Addr, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	if op, ok := err.(*net.OpError); ok {
		return op
	}
	return &net.OpError{Op: op, Net: "mptcp", Source: source, Addr: addr, Err: err}
}

// errExpired is what a call returns whose deadline passed.
var errExpired = os.ErrDeadlineExceeded
