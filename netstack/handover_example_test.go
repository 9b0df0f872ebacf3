package netstack_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/netip"

	"github.com/gomptcp/gomptcp/netstack"
)

// A phone spares its cellular link as long as Wi-Fi works.
func Example_handover() {
	phone, err := netstack.New(netstack.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer phone.Close()
	server, err := netstack.New(netstack.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()

	wifi, wifiServer := netstack.NewPipe(netstack.PipeConfig{})
	cellular, cellularServer := netstack.NewPipe(netstack.PipeConfig{})
	prefix := netip.MustParsePrefix
	err = errors.Join(
		phone.AddLink(netstack.LinkConfig{Name: "wifi", Link: wifi, Addrs: []netip.Prefix{prefix("10.0.1.1/24")}}),
		phone.AddLink(netstack.LinkConfig{Name: "cellular", Link: cellular, Addrs: []netip.Prefix{prefix("10.0.2.1/24")}, Backup: true}),
		server.AddLink(netstack.LinkConfig{Name: "a", Link: wifiServer, Addrs: []netip.Prefix{prefix("10.0.1.2/24")}}),
		server.AddLink(netstack.LinkConfig{Name: "b", Link: cellularServer, Addrs: []netip.Prefix{prefix("10.0.2.2/24")}}),
	)
	if err != nil {
		log.Fatal(err)
	}

	listener, err := server.Listen("mptcp", ":7")
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			io.Copy(conn, conn)
			conn.Close()
		}
	}()
	conn, err := phone.Dial("mptcp", "10.0.1.2:7")
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()

	exchange := func() {
		b := make([]byte, 100_000)
		if _, err := conn.Write(b); err != nil {
			log.Fatal(err)
		}
		if _, err := io.ReadFull(conn, b); err != nil {
			log.Fatal(err)
		}
	}
	exchange()
	fmt.Println("cellular is used:", cellular.Stats().Bytes > 100_000)
	if err := phone.SetLinkUp("wifi", false); err != nil { // as netstack.Watch tells it
		log.Fatal(err)
	}
	exchange()
	fmt.Println("cellular is used:", cellular.Stats().Bytes > 100_000)
	// Output:
	// cellular is used: false
	// cellular is used: true
}
