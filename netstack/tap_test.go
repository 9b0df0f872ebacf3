package netstack

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"
	"github.com/stretchr/testify/require"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

func TestTapWritesReadablePcapng(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var file bytes.Buffer
		w := NewPcapWriter(&file)
		a, b := NewPipe(PipeConfig{AB: Shape{Delay: ms(10)}})
		c, d := NewPipe(PipeConfig{})
		wifi, lte := NewTap(b, "wifi", w), NewTap(c, "lte", w)
		bt, dt := attachSink(wifi), attachSink(d)
		require.True(t, wifi.IsAttached())
		require.Equal(t, uint32(1500), wifi.MTU())

		transmit(t, a, datagram(100, 1)) // into wifi, recorded on arrival
		transmit(t, lte, datagram(200, 2))
		time.Sleep(ms(20))
		transmit(t, wifi, datagram(300, 3))
		require.Len(t, bt.arrivals(), 1)
		require.Len(t, dt.arrivals(), 1)
		wifi.Attach(nil)
		transmit(t, a, datagram(100, 4)) // arrives nowhere
		time.Sleep(ms(20))
		require.NoError(t, w.Flush())

		r, err := pcapgo.NewNgReader(&file, pcapgo.DefaultNgReaderOptions)
		require.NoError(t, err)
		for _, want := range []struct {
			intf  int
			name  string
			after time.Duration
			data  []byte
		}{
			{1, "lte", 0, datagram(200, 2)},
			{0, "wifi", ms(10), datagram(100, 1)},
			{0, "wifi", ms(20), datagram(300, 3)},
		} {
			data, ci, err := r.ReadPacketData()
			require.NoError(t, err)
			require.Equal(t, want.data, data)
			require.Equal(t, want.intf, ci.InterfaceIndex)
			require.Equal(t, want.after, ci.Timestamp.Sub(start))
			intf, err := r.Interface(ci.InterfaceIndex)
			require.NoError(t, err)
			require.Equal(t, want.name, intf.Name)
			require.Equal(t, layers.LinkTypeRaw, intf.LinkType)
			packet := gopacket.NewPacket(data, layers.LinkTypeRaw, gopacket.Default)
			require.NotNil(t, packet.Layer(layers.LayerTypeIPv4))
		}
		_, _, err = r.ReadPacketData()
		require.Equal(t, io.EOF, err)
	})
}

func TestTapPassesOnWhatTheLinkCan(t *testing.T) {
	w := NewPcapWriter(io.Discard)
	a, _ := NewPipe(PipeConfig{Offload: true})
	tapped := NewTap(a, "a", w)
	require.Equal(t, a.Capabilities(), tapped.Capabilities())
	require.Equal(t, stack.HostGSOSupported, tapped.(stack.GSOEndpoint).SupportedGSO())
	require.Equal(t, uint32(65535), tapped.(stack.GSOEndpoint).GSOMaxSize())
	b, _ := NewPipe(PipeConfig{})
	require.Equal(t, stack.GSONotSupported, NewTap(b, "b", w).(stack.GSOEndpoint).SupportedGSO())
}

type brokenDisk struct{}

func (brokenDisk) Write([]byte) (int, error) { return 0, errors.New("disk full") }

// A capture that can't be written costs the capture, not the packets.
func TestTapSurvivesAFullDisk(t *testing.T) {
	w := NewPcapWriter(brokenDisk{})
	a, b := NewPipe(PipeConfig{})
	bt := attachSink(NewTap(b, "b", w))
	for range 100 {
		transmit(t, a, datagram(1000, 1))
	}
	require.Len(t, bt.arrivals(), 100)
	require.EqualError(t, w.Flush(), "disk full")
}

func TestTapsWriteAtTheSameTime(t *testing.T) {
	var file bytes.Buffer
	w := NewPcapWriter(&file)
	var taps sync.WaitGroup
	for range 4 {
		a, b := NewPipe(PipeConfig{})
		attachSink(NewTap(b, "b", w))
		taps.Go(func() {
			for range 50 {
				transmit(t, a, datagram(99, 1))
			}
		})
	}
	taps.Wait()
	require.NoError(t, w.Flush())
	r, err := pcapgo.NewNgReader(&file, pcapgo.DefaultNgReaderOptions)
	require.NoError(t, err)
	n := 0
	for {
		if _, _, err = r.ReadPacketData(); err != nil {
			break
		}
		n++
	}
	require.Equal(t, io.EOF, err)
	require.Equal(t, 200, n)
}
