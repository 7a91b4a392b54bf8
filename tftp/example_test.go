package tftp_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"net/netip"
	"strings"

	pin "github.com/pin/tftp/v3"

	"drover/tftp"
)

// A server whose files depend on the client.
func ExampleServer() {
	transfers := make(chan tftp.Transfer, 1)
	s := &tftp.Server{
		Addr: "127.0.0.1:0",
		Open: func(client netip.Addr, name string) (tftp.File, error) {
			return memory{bytes.NewReader([]byte(name + " for " + client.String()))}, nil
		},
		OnTransfer: func(t tftp.Transfer) { transfers <- t },
	}
	if err := s.Listen(); err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error)
	go func() { stopped <- s.Serve(ctx) }()

	client, err := pin.NewClient(s.LocalAddr().String())
	if err != nil {
		log.Fatal(err)
	}
	file, err := client.Receive("/grub/grub.cfg", "octet")
	if err != nil {
		log.Fatal(err)
	}
	var text strings.Builder
	if _, err := file.WriteTo(&text); err != nil {
		log.Fatal(err)
	}
	t := <-transfers
	stop()
	fmt.Println(text.String())
	fmt.Println(t.File, t.Bytes, "bytes", t.Err, <-stopped)
	// Output:
	// grub/grub.cfg for 127.0.0.1
	// grub/grub.cfg 27 bytes <nil> <nil>
}
