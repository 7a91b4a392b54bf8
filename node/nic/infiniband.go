package nic

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv4/nclient4"
	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/iana"
	"golang.org/x/sys/unix"

	"drover/pools"
)

const (
	infiniBandAddress = 20 // bytes of a hardware address (RFC 4391, section 9.1.1); the last 8 are the GUID of the port
	guidLength        = 8
)

// portGUID returns the GUID of an InfiniBand port with a hardware address; nil for Ethernet.
func portGUID(address net.HardwareAddr) []byte {
	if len(address) != infiniBandAddress {
		return nil
	}
	return address[infiniBandAddress-guidLength:]
}

// macOf returns the MAC of a card. That of an InfiniBand port is the one that its GUID is made
// of, by which the server and iPXE know it: 00:02:c9:ab:cd:ef of 0002:c903:00ab:cdef.
func macOf(address net.HardwareAddr) (mac pools.MAC) {
	if guid := portGUID(address); guid != nil {
		copy(mac[:3], guid)
		copy(mac[3:], guid[guidLength-3:])
	} else if len(address) == len(mac) {
		copy(mac[:], address)
	}
	return mac
}

// clientID returns the client identifier of InfiniBand (RFC 4390, section 2.1, with RFC 4361):
// type 255, a number, and a DUID that ends in the GUID.
func (n *NIC) clientID() []byte {
	id := n.iaid()
	return append(append([]byte{255}, id[:]...), n.duid().ToBytes()...)
}

// infiniBandOptions returns what makes a request one of InfiniBand: its hardware address has
// no room in a packet, so that the client identifier stands for it and answers are broadcast.
func (n *NIC) infiniBandOptions() []dhcpv4.Modifier {
	return append(DHCPOptions(n.MAC[:]),
		dhcpv4.WithHWType(iana.HWTypeInfiniband), dhcpv4.WithBroadcast(true),
		dhcpv4.WithOption(dhcpv4.OptClientIdentifier(n.clientID())))
}

// infiniBandClient opens a DHCP client on a UDP socket: the kernel knows how to broadcast on
// the link, whose frames are not those of Ethernet.
func (n *NIC) infiniBandClient(ctx context.Context) (*nclient4.Client, error) {
	var refused error
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return errors.Join(c.Control(func(fd uintptr) { refused = bindLink(int(fd), n.Name) }), refused)
	}}
	conn, err := config.ListenPacket(ctx, "udp4", fmt.Sprintf(":%d", nclient4.ClientPort))
	if err != nil {
		return nil, err
	}
	return nclient4.NewWithConn(conn, net.HardwareAddr{}, nclient4.WithTimeout(dhcpTimeout), nclient4.WithRetry(dhcpTries))
}

// bindLink makes a socket broadcast on one link.
func bindLink(fd int, device string) error {
	if err := unix.BindToDevice(fd, device); err != nil {
		return fmt.Errorf("bind to interface: %w", err)
	}
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BROADCAST, 1)
}

// hardware returns hardware type and address of the card in a DUID.
func (n *NIC) hardware() *dhcpv6.DUIDLL {
	if guid := portGUID(n.link.Attrs().HardwareAddr); guid != nil {
		return &dhcpv6.DUIDLL{HWType: iana.HWTypeInfiniband, LinkLayerAddr: guid}
	}
	return &dhcpv6.DUIDLL{HWType: iana.HWTypeEthernet, LinkLayerAddr: n.MAC[:]}
}

// isInfiniBand reports whether the card is an InfiniBand port.
func (n *NIC) isInfiniBand() bool { return portGUID(n.link.Attrs().HardwareAddr) != nil }
