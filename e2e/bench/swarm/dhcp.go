package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"path/filepath"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/e2e/dhcptest"
	"drover/node/nic"
	"drover/pools"
)

// dhcpClient is a kind of DHCP client.
type dhcpClient struct {
	recorded [][]byte        // DISCOVER and REQUEST of a real one; nil: drover-init
	waits    []time.Duration // for an answer, before a message is sent again
}

// dhcpClients are the three that a machine runs in a boot.
type dhcpClients struct{ rom, ipxe, init dhcpClient }

func readClients(source string) (c dhcpClients, err error) {
	dir := filepath.Join(source, "dhcp", "testdata", "recorded")
	// The PXE specification, section 2.2.3; iPXE's retry timer; see node/nic.
	c.rom.waits = []time.Duration{4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second}
	c.ipxe.waits = []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 10 * time.Second}
	c.init.waits = []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second}
	if c.rom.recorded, err = dhcptest.Recorded(filepath.Join(dir, "ovmf-pxe.hex")); err != nil {
		return c, err
	}
	c.ipxe.recorded, err = dhcptest.Recorded(filepath.Join(dir, "snponly-efi.hex"))
	return c, err
}

// message returns a DISCOVER, or with an OFFER the REQUEST that follows.
func (c *dhcpClient) message(mac pools.MAC, xid dhcpv4.TransactionID, offer *dhcpv4.DHCPv4) (d *dhcpv4.DHCPv4, err error) {
	if c.recorded == nil {
		return c.fresh(mac, xid, offer)
	}
	raw := c.recorded[0]
	if offer != nil {
		raw = c.recorded[1]
	}
	if d, err = dhcpv4.FromBytes(raw); err != nil {
		return nil, err
	}
	d.TransactionID, d.ClientHWAddr = xid, mac[:]
	if id := d.Options.Get(dhcpv4.OptionClientIdentifier); len(id) == 7 {
		copy(id[1:], mac[:])
	}
	if id := d.Options.Get(dhcpv4.OptionClientMachineIdentifier); len(id) == 17 {
		copy(id[11:], mac[:]) // each board has a UUID of its own
	}
	if offer != nil {
		d.UpdateOption(dhcpv4.OptRequestedIPAddress(offer.YourIPAddr))
		d.UpdateOption(dhcpv4.OptServerIdentifier(offer.ServerIdentifier()))
	}
	return d, nil
}

// fresh returns a message as drover-init sends it.
func (c *dhcpClient) fresh(mac pools.MAC, xid dhcpv4.TransactionID, offer *dhcpv4.DHCPv4) (d *dhcpv4.DHCPv4, err error) {
	options := nic.DHCPOptions(mac[:])
	if offer != nil {
		return dhcpv4.NewRequestFromOffer(offer, options...)
	}
	d, err = dhcpv4.NewDiscovery(net.HardwareAddr(mac[:]), options...)
	if err == nil {
		d.TransactionID = xid
	}
	return d, err
}

var errNoAnswer = errors.New("no DHCP server answers")

// lease gets an address in one four-way exchange.
func (m *machine) lease(ctx context.Context, c *dhcpClient) (*dhcpv4.DHCPv4, error) {
	answers := m.relay.listen(m.mac)
	defer m.relay.forget(m.mac)
	var xid dhcpv4.TransactionID
	binary.BigEndian.PutUint32(xid[:], rand.Uint32())
	var answer *dhcpv4.DHCPv4
	for _, want := range []dhcpv4.MessageType{dhcpv4.MessageTypeOffer, dhcpv4.MessageTypeAck} {
		message, err := c.message(m.mac, xid, answer)
		if err != nil {
			return nil, err
		}
		if answer, err = m.exchange(ctx, message, answers, c.waits, want); err != nil {
			return nil, err
		}
	}
	addr, ok := netip.AddrFromSlice(answer.YourIPAddr.To4())
	if want := declaredAddr(m.index); !ok || m.swarm.declared(m.index) && addr != want {
		return nil, violation{fmt.Errorf("got address %s, want %s", answer.YourIPAddr, want)}
	}
	if err := m.swarm.holds(m, addr); err != nil {
		return nil, err
	}
	m.addr = addr
	return answer, nil
}

// exchange sends a message until the answer comes.
func (m *machine) exchange(ctx context.Context, message *dhcpv4.DHCPv4, answers <-chan *dhcpv4.DHCPv4, waits []time.Duration, want dhcpv4.MessageType) (*dhcpv4.DHCPv4, error) {
	for i, wait := range waits {
		if i > 0 {
			m.again("DHCP")
		}
		m.relay.send(message)
		for late := time.After(wait); late != nil; {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-late:
				late = nil
			case a := <-answers:
				switch {
				case a.TransactionID != message.TransactionID:
				case a.MessageType() == want:
					return a, nil
				case a.MessageType() == dhcpv4.MessageTypeNak:
					return nil, errors.New("the server sends a NAK")
				}
			}
		}
	}
	return nil, errNoAnswer
}
