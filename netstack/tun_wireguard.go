//go:build darwin || windows || freebsd || openbsd

package netstack

import (
	"runtime"
	"sync"

	"golang.zx2c4.com/wireguard/tun"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// headroom is what some systems want before each packet: 4 bytes on the BSDs
// and macOS, the virtio header elsewhere.
const headroom = 16

// wireguardDevice is a TUN device as WireGuard opens them. It has no offload
// that is of use: what the system has is cut and merged in there.
type wireguardDevice struct {
	dev    tun.Device
	events sync.WaitGroup // the goroutine that empties the queue of events

	read  [][]byte // the reader's memory, with headroom
	sizes []int

	mu    sync.Mutex
	write [][]byte // guarded by mu: memory of the batch being written
}

func openDevice(cfg *TUNConfig) (device, opened, error) {
	name, mtu := cfg.Name, cfg.MTU
	if name == "" {
		name = anyName()
	}
	if mtu == 0 {
		mtu = defaultMTU
	}
	dev, err := tun.CreateTUN(name, mtu)
	if err != nil {
		return nil, opened{}, err
	}
	is := opened{mtu: mtu}
	if is.name, err = dev.Name(); err == nil && cfg.MTU == 0 {
		is.mtu, err = dev.MTU()
	}
	if err != nil {
		dev.Close()
		return nil, opened{}, err
	}
	d := &wireguardDevice{dev: dev, sizes: make([]int, dev.BatchSize())}
	for range dev.BatchSize() {
		d.read = append(d.read, make([]byte, headroom+maxWhole))
	}
	// The device blocks when nobody takes its events.
	d.events.Go(func() {
		for range dev.Events() {
		}
	})
	return d, is, nil
}

// anyName returns what has the system choose a name, or where it does not, one
// of ours.
func anyName() string {
	switch runtime.GOOS {
	case "darwin":
		return "utun"
	case "windows":
		return "gomptcp"
	}
	return "tun"
}

// interrupt closes the device: a read has no other end.
func (d *wireguardDevice) interrupt() { _ = d.dev.Close() }

func (d *wireguardDevice) Close() error {
	err := d.dev.Close()
	d.events.Wait()
	return err
}

func (d *wireguardDevice) receive(dst []*stack.PacketBuffer) ([]*stack.PacketBuffer, error) {
	n, err := d.dev.Read(d.read, d.sizes, headroom)
	for i := range n {
		v := buffer.NewViewWithData(d.read[i][headroom : headroom+d.sizes[i]])
		dst = append(dst, stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithView(v)}))
	}
	return dst, err
}

func (d *wireguardDevice) send(pkts []*stack.PacketBuffer) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(pkts) > 0 {
		n := min(len(pkts), d.dev.BatchSize())
		for len(d.write) < n {
			d.write = append(d.write, make([]byte, 0, headroom+maxWhole))
		}
		for i, pkt := range pkts[:n] {
			b := d.write[i][:headroom]
			list, _ := pkt.AsViewList()
			for v := list.Front(); v != nil; v = v.Next() {
				b = append(b, v.AsSlice()...)
			}
			d.write[i] = b
		}
		if _, err := d.dev.Write(d.write[:n], headroom); err != nil {
			return err
		}
		pkts = pkts[n:]
	}
	return nil
}
