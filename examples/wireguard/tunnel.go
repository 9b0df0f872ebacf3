package main

import (
	"bufio"
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"golang.zx2c4.com/wireguard/conn"
	"golang.zx2c4.com/wireguard/device"

	"github.com/gomptcp/gomptcp/netstack"
)

// mtu leaves room for WireGuard's headers in a packet of 1500 bytes.
const mtu = 1420

// shapes are the tunnels: what the networks below them would carry. Loopback
// alone has neither a rate nor a delay worth the name.
var shapes = []netstack.Shape{
	{Rate: 40e6, Delay: 10 * time.Millisecond},
	{Rate: 20e6, Delay: 20 * time.Millisecond},
}

// faster is the tunnel that is taken down.
const faster = 0

// Numbers of the hosts in their addresses.
const (
	clientHost = 1
	serverHost = 2
)

// address is a host's address in tunnel i.
func address(i, host int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 0, byte(i + 1), byte(host)})
}

// name is what tunnel i is called.
func name(i int) string { return fmt.Sprintf("wg%d", i) }

// tunnel is a WireGuard tunnel with its two ends.
type tunnel struct {
	client, server       *device.Device
	clientTUN, serverTUN *memoryTUN
}

// network is two hosts with tunnels between them.
type network struct {
	client, server *netstack.Host
	tunnels        []*tunnel
}

// newNetwork makes the hosts and the tunnels, and waits for the tunnels to have
// their keys: TCP, which does not know what takes so long, would take a slow
// handshake for losses, and several for a path on which MPTCP does not pass.
func newNetwork(ctx context.Context) (n *network, err error) {
	n = &network{}
	defer func() {
		if err != nil {
			n.close()
		}
	}()
	if n.client, err = netstack.New(netstack.Config{}); err != nil {
		return n, err
	}
	if n.server, err = netstack.New(netstack.Config{}); err != nil {
		return n, err
	}
	for i, shape := range shapes {
		if err = n.dig(i, shape); err != nil {
			return n, fmt.Errorf("tunnel %s: %w", name(i), err)
		}
	}
	for i, t := range n.tunnels {
		err = poll(ctx, "no handshake in tunnel "+name(i), func() (bool, error) {
			at, err := value(t.client, "last_handshake_time_sec")
			return at > 0, err
		})
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// dig makes tunnel i and gives each host its end.
func (n *network) dig(i int, shape netstack.Shape) error {
	clientTUN, clientLink := newTUN(name(i), netstack.PipeConfig{MTU: mtu, AB: shape, BA: shape})
	serverTUN, serverLink := newTUN(name(i), netstack.PipeConfig{MTU: mtu})
	t := &tunnel{
		client: newDevice(clientTUN), clientTUN: clientTUN,
		server: newDevice(serverTUN), serverTUN: serverTUN,
	}
	n.tunnels = append(n.tunnels, t)
	if err := t.up(address(i, clientHost), address(i, serverHost)); err != nil {
		return err
	}
	return errors.Join(
		addLink(n.client, i, clientHost, clientLink),
		addLink(n.server, i, serverHost, serverLink),
	)
}

// newDevice makes one end of a tunnel. Its log is empty: what goes wrong with a
// tunnel shows in the handshakes that it lacks.
func newDevice(dev *memoryTUN) *device.Device {
	return device.NewDevice(dev, conn.NewDefaultBind(), device.NewLogger(device.LogLevelSilent, ""))
}

func addLink(h *netstack.Host, i, host int, link *netstack.PipeEnd) error {
	return h.AddLink(netstack.LinkConfig{
		Name:  name(i),
		Link:  link,
		Addrs: []netip.Prefix{netip.PrefixFrom(address(i, host), 24)},
	})
}

// up gives both ends their keys and opens their sockets. The server learns the
// client's address from the first handshake, to which the keepalives lead.
func (t *tunnel) up(client, server netip.Addr) error {
	clientKey, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	serverKey, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	if err := t.server.IpcSet(fmt.Sprintf("private_key=%x\npublic_key=%x\nallowed_ip=%v/32\n",
		serverKey.Bytes(), clientKey.PublicKey().Bytes(), client)); err != nil {
		return err
	}
	if err := t.server.Up(); err != nil {
		return err
	}
	port, err := value(t.server, "listen_port")
	if err != nil {
		return err
	}
	if err := t.client.IpcSet(fmt.Sprintf("private_key=%x\npublic_key=%x\nallowed_ip=%v/32\nendpoint=127.0.0.1:%d\npersistent_keepalive_interval=25\n",
		clientKey.Bytes(), serverKey.PublicKey().Bytes(), server, port)); err != nil {
		return err
	}
	return t.client.Up()
}

// value returns a number of a device's state.
func value(d *device.Device, key string) (uint64, error) {
	state, err := d.IpcGet()
	if err != nil {
		return 0, err
	}
	for lines := bufio.NewScanner(strings.NewReader(state)); lines.Scan(); {
		if v, ok := strings.CutPrefix(lines.Text(), key+"="); ok {
			return strconv.ParseUint(v, 10, 64)
		}
	}
	return 0, fmt.Errorf("WireGuard says no %s", key)
}

// close ends the hosts and then the tunnels.
func (n *network) close() {
	for _, h := range []*netstack.Host{n.client, n.server} {
		if h != nil {
			h.Close()
		}
	}
	for _, t := range n.tunnels {
		t.client.Close()
		t.server.Close()
	}
}
