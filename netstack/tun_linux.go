package netstack

import (
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// tunDevice is a file attached to a TUN device, in a form that Go's poller
// serves. It writes packets whose bytes lie in several views without gathering
// them.
type tunDevice struct {
	*os.File
	raw   syscall.RawConn
	write func(fd uintptr) bool // t.writev; kept to spare an allocation a packet

	mu    sync.Mutex
	views [][]byte // guarded by mu
	err   error    // guarded by mu; of the last write
}

// openDevice opens or creates a device and sets its MTU unless mtu is 0.
func openDevice(name string, mtu int) (device, string, int, error) {
	ifr, err := unix.NewIfreq(name)
	if err != nil {
		return nil, "", 0, fmt.Errorf("name %q: %w", name, err)
	}
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, "", 0, fmt.Errorf("/dev/net/tun: %w", err)
	}
	ifr.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr); err != nil {
		unix.Close(fd)
		return nil, "", 0, os.NewSyscallError("TUNSETIFF", err)
	}
	d := &tunDevice{File: os.NewFile(uintptr(fd), "/dev/net/tun")}
	d.write = d.writev
	name = ifr.Name()
	mtu, err = deviceMTU(name, mtu)
	if err == nil {
		d.raw, err = d.SyscallConn()
	}
	if err != nil {
		d.Close()
		return nil, "", 0, err
	}
	return d, name, mtu, nil
}

// deviceMTU sets the MTU of a device, unless it is 0, and returns what it is.
func deviceMTU(name string, mtu int) (int, error) {
	ifr, err := unix.NewIfreq(name)
	if err != nil {
		return 0, err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd)
	if mtu > 0 {
		ifr.SetUint32(uint32(mtu))
		if err := unix.IoctlIfreq(fd, unix.SIOCSIFMTU, ifr); err != nil {
			return 0, fmt.Errorf("mtu %d: %w", mtu, err)
		}
		return mtu, nil
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFMTU, ifr); err != nil {
		return 0, os.NewSyscallError("SIOCGIFMTU", err)
	}
	return int(ifr.Uint32()), nil
}

func (d *tunDevice) send(pkt *stack.PacketBuffer) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	list, _ := pkt.AsViewList()
	for v := list.Front(); v != nil; v = v.Next() {
		d.views = append(d.views, v.AsSlice())
	}
	err := d.raw.Write(d.write)
	if err == nil {
		err = d.err
	}
	clear(d.views)
	d.views = d.views[:0]
	return err
}

// writev is what RawConn calls, with mu held, until it returns true.
func (d *tunDevice) writev(fd uintptr) bool {
	_, d.err = unix.Writev(int(fd), d.views)
	return d.err != unix.EAGAIN
}
