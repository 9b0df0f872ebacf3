package netstack

import (
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// tunDevice is a file attached to a TUN device, in a form that Go's poller
// serves. Bytes that lie in several views are written without being gathered,
// and all packets that wait are read in one go.
type tunDevice struct {
	*os.File
	raw         syscall.RawConn
	offload     bool                  // a vnetHeader precedes each packet
	write, read func(fd uintptr) bool // t.writev and t.readv; kept to spare an allocation a call

	mu     sync.Mutex
	header vnetHeader // guarded by mu
	views  [][]byte   // guarded by mu
	err    error      // guarded by mu; of the last write

	// What follows belongs to the reader.
	got     []*stack.PacketBuffer
	gotten  int          // bytes of the packets in got
	space   *buffer.View // to be read into
	before  vnetHeader
	pieces  [][]byte
	readErr error
}

// openDevice opens or creates a device and sets its MTU unless that is 0.
func openDevice(cfg *TUNConfig) (device, opened, error) {
	ifr, err := unix.NewIfreq(cfg.Name)
	if err != nil {
		return nil, opened{}, fmt.Errorf("name %q: %w", cfg.Name, err)
	}
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, opened{}, fmt.Errorf("/dev/net/tun: %w", err)
	}
	flags := uint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if !cfg.NoOffload {
		flags |= unix.IFF_VNET_HDR
	}
	ifr.SetUint16(flags)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr); err != nil {
		unix.Close(fd)
		return nil, opened{}, os.NewSyscallError("TUNSETIFF", err)
	}
	d := &tunDevice{File: os.NewFile(uintptr(fd), "/dev/net/tun"), offload: !cfg.NoOffload}
	d.write, d.read = d.writev, d.readv
	is := opened{name: ifr.Name(), offload: d.offload}
	if d.offload {
		const offloads = unix.TUN_F_CSUM | unix.TUN_F_TSO4 | unix.TUN_F_TSO6 | unix.TUN_F_TSO_ECN
		err = os.NewSyscallError("TUNSETOFFLOAD", unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, offloads))
	}
	if err == nil {
		is.mtu, err = deviceMTU(is.name, cfg.MTU)
	}
	if err == nil {
		d.raw, err = d.SyscallConn()
	}
	if err != nil {
		d.Close()
		return nil, opened{}, err
	}
	return d, is, nil
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

func (d *tunDevice) interrupt() { _ = d.SetReadDeadline(time.Unix(1, 0)) }

func (d *tunDevice) send(pkts []*stack.PacketBuffer) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var first error
	for _, pkt := range pkts {
		if err := d.sendOne(pkt); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// sendOne is called with mu held.
func (d *tunDevice) sendOne(pkt *stack.PacketBuffer) error {
	if d.offload {
		d.header.describe(pkt)
		d.views = append(d.views, d.header[:])
	}
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

func (d *tunDevice) receive(dst []*stack.PacketBuffer) ([]*stack.PacketBuffer, error) {
	d.got, d.gotten = dst, 0
	err := d.raw.Read(d.read)
	if err == nil {
		err = d.readErr
	}
	dst, d.got = d.got, nil
	if err != nil && d.space != nil {
		leaveBlock(d.space)
		d.space = nil
	}
	return dst, err
}

// readMost is how many bytes are read before they are delivered: few enough
// that they are still in the processor's caches then.
const readMost = 1 << 20

// readv is what RawConn calls until it returns true.
func (d *tunDevice) readv(fd uintptr) bool {
	for len(d.got) < burstMost && d.gotten < readMost {
		if d.space == nil {
			d.space = takeBlock()
		}
		d.pieces = d.pieces[:0]
		head := 0
		if d.offload {
			head = len(d.before)
			d.pieces = append(d.pieces, d.before[:])
		}
		d.pieces = append(d.pieces, d.space.AsSlice())
		n, err := unix.Readv(int(fd), d.pieces)
		switch {
		case err == unix.EAGAIN:
			d.readErr = nil
			return len(d.got) > 0
		case err == unix.EINTR:
			continue
		case err != nil || n < head:
			d.readErr = err
			return true
		}
		d.take(n - head)
	}
	return true
}

// mostlyFull is how many bytes a packet must have to be given the memory that
// it was read into. Smaller ones are copied, so that none holds more than about
// twice its size.
const mostlyFull = blockSize / 2

// take makes a packet of the n bytes read last.
func (d *tunDevice) take(n int) {
	b := d.space.AsSlice()[:n]
	var v *buffer.View
	if n > mostlyFull {
		v = share(d.space, b)
		leaveBlock(d.space)
		d.space = nil
	} else {
		v = buffer.NewViewWithData(b)
	}
	d.gotten += n
	if pkt := d.before.packet(v); pkt != nil {
		d.got = append(d.got, pkt)
	}
}
