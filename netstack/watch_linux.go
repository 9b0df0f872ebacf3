package netstack

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// netlink is a socket on which the kernel tells of links and addresses that
// come, change and go. What the messages say is not read: they only say that
// the interfaces are to be looked at, so that a message that was lost, since
// the socket's buffer was full, does no harm.
type netlink struct{ socket *os.File }

// subscribe returns a netlink socket, or a poller where that is forbidden, as
// to applications on Android.
func subscribe() lookout {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return poller{}
	}
	// The groups of RTM_NEWLINK and RTM_DELLINK, and of RTM_NEWADDR and
	// RTM_DELADDR of both IP versions.
	const groups = unix.RTMGRP_LINK | unix.RTMGRP_IPV4_IFADDR | unix.RTMGRP_IPV6_IFADDR
	if unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: groups}) != nil {
		unix.Close(fd)
		return poller{}
	}
	return &netlink{os.NewFile(uintptr(fd), "netlink")}
}

func (n *netlink) wait(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = n.socket.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	var message [4096]byte // of a longer one the rest is cut off
	_, err := n.socket.Read(message[:])
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, unix.ENOBUFS):
		return nil // messages were lost
	}
	return err
}

func (n *netlink) close() { n.socket.Close() }
