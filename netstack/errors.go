package netstack

import (
	"context"
	"errors"
	"net"
	"reflect"
	"syscall"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// errorTable pairs every error of gVisor with what a Go program compares
// errors with. Where several share one partner, the first stands for it on the
// way back.
var errorTable = []struct {
	cause tcpip.Error
	is    error
}{
	{&tcpip.ErrAborted{}, context.Canceled},
	{&tcpip.ErrAddressFamilyNotSupported{}, syscall.EAFNOSUPPORT},
	{&tcpip.ErrAlreadyConnected{}, syscall.EISCONN},
	{&tcpip.ErrAlreadyConnecting{}, syscall.EALREADY},
	{&tcpip.ErrBadAddress{}, syscall.EFAULT},
	{&tcpip.ErrBadBuffer{}, syscall.EFAULT},
	{&tcpip.ErrBadLocalAddress{}, syscall.EADDRNOTAVAIL},
	{&tcpip.ErrBroadcastDisabled{}, syscall.EACCES},
	{&tcpip.ErrClosedForReceive{}, net.ErrClosed},
	{&tcpip.ErrClosedForSend{}, syscall.EPIPE},
	{&tcpip.ErrConnectStarted{}, syscall.EINPROGRESS},
	{&tcpip.ErrConnectionAborted{}, syscall.ECONNABORTED},
	{&tcpip.ErrConnectionRefused{}, syscall.ECONNREFUSED},
	{&tcpip.ErrConnectionReset{}, syscall.ECONNRESET},
	{&tcpip.ErrDestinationRequired{}, syscall.EDESTADDRREQ},
	{&tcpip.ErrDuplicateAddress{}, syscall.EEXIST},
	{&tcpip.ErrDuplicateNICID{}, syscall.EEXIST},
	{&tcpip.ErrEndpointBusy{}, syscall.EBUSY},
	{&tcpip.ErrHostDown{}, syscall.EHOSTDOWN},
	{&tcpip.ErrHostUnreachable{}, syscall.EHOSTUNREACH},
	{&tcpip.ErrInvalidEndpointState{}, syscall.EINVAL},
	{&tcpip.ErrAlreadyBound{}, syscall.EINVAL},
	{&tcpip.ErrInvalidNICID{}, syscall.EINVAL},
	{&tcpip.ErrInvalidOptionValue{}, syscall.EINVAL},
	{&tcpip.ErrInvalidPortRange{}, syscall.EINVAL},
	{&tcpip.ErrMalformedHeader{}, syscall.EINVAL},
	{&tcpip.ErrMessageTooLong{}, syscall.EMSGSIZE},
	{&tcpip.ErrMissingRequiredFields{}, syscall.EINVAL},
	{&tcpip.ErrMulticastInputCannotBeOutput{}, syscall.EINVAL},
	{&tcpip.ErrNetworkUnreachable{}, syscall.ENETUNREACH},
	{&tcpip.ErrNoBufferSpace{}, syscall.ENOBUFS},
	{&tcpip.ErrNoNet{}, syscall.ENETDOWN},
	{&tcpip.ErrPortInUse{}, syscall.EADDRINUSE},
	{&tcpip.ErrNoPortAvailable{}, syscall.EAGAIN},
	{&tcpip.ErrNoSuchFile{}, syscall.ENOENT},
	{&tcpip.ErrNotConnected{}, syscall.ENOTCONN},
	{&tcpip.ErrNotPermitted{}, syscall.EPERM},
	{&tcpip.ErrNotSupported{}, syscall.EOPNOTSUPP},
	{&tcpip.ErrQueueSizeNotSupported{}, syscall.ENOTTY},
	{&tcpip.ErrTimeout{}, syscall.ETIMEDOUT},
	{&tcpip.ErrUnknownDevice{}, syscall.ENODEV},
	{&tcpip.ErrUnknownNICID{}, syscall.ENODEV},
	{&tcpip.ErrUnknownProtocol{}, syscall.EPROTONOSUPPORT},
	{&tcpip.ErrUnknownProtocolOption{}, syscall.ENOPROTOOPT},
	{&tcpip.ErrWouldBlock{}, syscall.EWOULDBLOCK},
}

// stackError is an error of gVisor as a Go error: its text is gVisor's, and
// errors.Is finds the partner in the table.
type stackError struct {
	cause tcpip.Error
	is    error
}

func (e *stackError) Error() string { return e.cause.String() }
func (e *stackError) Unwrap() error { return e.is }

// toError converts an error of gVisor; nil stays nil.
func toError(cause tcpip.Error) error {
	if cause == nil {
		return nil
	}
	for _, row := range errorTable {
		if reflect.TypeOf(row.cause) == reflect.TypeOf(cause) {
			return &stackError{cause, row.is}
		}
	}
	return &stackError{cause, syscall.EINVAL}
}

// fromError converts an error for gVisor; nil stays nil.
func fromError(err error) tcpip.Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*stackError](err); ok {
		return e.cause
	}
	for _, row := range errorTable {
		if errors.Is(err, row.is) {
			return row.cause
		}
	}
	return &tcpip.ErrInvalidEndpointState{}
}
