package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
)

// Every MPTCP connection between client and server begins with a request:
//
//	version (1)  address length (1): 4 or 16  address  port (2)
//
// The server answers with one byte, a status. After statusOK both directions
// carry the flow and nothing else. The highest bit of the address length says
// that it is one of datagrams.
const (
	version   = 1
	datagrams = 0x80
)

// request is what the client asks for.
type request struct {
	dst       netip.AddrPort
	datagrams bool // UDP, else TCP
}

// status is the server's answer to a request.
type status byte

const (
	statusOK          status = iota
	statusDenied             // the destination is not on the list
	statusUnreachable        // it could not be dialled
	statusBusy               // the server has as many flows as it may
)

func (s status) String() string {
	switch s {
	case statusOK:
		return "ok"
	case statusDenied:
		return "destination not allowed"
	case statusUnreachable:
		return "destination unreachable"
	case statusBusy:
		return "server busy"
	}
	return fmt.Sprintf("status %d", byte(s))
}

// errRequest is a request that is none.
var errRequest = errors.New("malformed request")

// appendRequest appends a request.
func appendRequest(b []byte, q request) []byte {
	address := q.dst.Addr().Unmap().AsSlice()
	length := byte(len(address))
	if q.datagrams {
		length |= datagrams
	}
	b = append(b, version, length)
	b = append(b, address...)
	return binary.BigEndian.AppendUint16(b, q.dst.Port())
}

// readRequest reads a request and not a byte beyond it.
func readRequest(r io.Reader) (request, error) {
	var b [2 + 16 + 2]byte
	if _, err := io.ReadFull(r, b[:2]); err != nil {
		return request{}, err
	}
	n := int(b[1] &^ datagrams)
	if b[0] != version || n != 4 && n != 16 {
		return request{}, errRequest
	}
	rest := b[2 : 2+n+2]
	if _, err := io.ReadFull(r, rest); err != nil {
		return request{}, err
	}
	address, _ := netip.AddrFromSlice(rest[:n])
	dst := netip.AddrPortFrom(address.Unmap(), binary.BigEndian.Uint16(rest[n:]))
	return request{dst: dst, datagrams: b[1]&datagrams != 0}, nil
}

// readStatus reads the server's answer; anything but statusOK is an error.
func readStatus(r io.Reader) error {
	var b [1]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return err
	}
	if s := status(b[0]); s != statusOK {
		return errors.New(s.String())
	}
	return nil
}
