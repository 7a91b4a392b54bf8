package nic

import (
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/vishvananda/netlink"
)

// maxWoken is the number of cards that Wake brings up: some have a hundred virtual functions.
const maxWoken = 16

// Wake brings the other Ethernet cards up, without addresses: a card that is down has no
// carrier, and hears nothing. They do not answer for the boot card. An error is no reason to
// end a boot. Down takes them down again.
func (n *NIC) Wake() {
	links, err := whole(netlink.LinkList)
	if err != nil {
		n.say("list network cards: %v", err)
	}
	n.quietARP()
	woken := 0
	for _, l := range links {
		a := l.Attrs()
		if l.Type() != "device" || a.EncapType != "ether" || a.Flags&net.FlagUp != 0 || a.Index == n.link.Attrs().Index || woken == maxWoken {
			continue
		}
		woken++
		n.withoutIPv6(a.Name)
		if err := netlink.LinkSetUp(l); err != nil {
			n.say("set %s up: %v", a.Name, err)
			continue
		}
		n.restore = append([]func() error{func() error { return netlink.LinkSetDown(l) }}, n.restore...)
	}
}

// withoutIPv6 keeps the kernel from taking addresses and routes from router advertisements on
// a card, until Down.
func (n *NIC) withoutIPv6(card string) {
	_ = n.set(filepath.Join("ipv6/conf", card, "disable_ipv6"), "1") // a kernel without IPv6 has no such file
}

// quietARP makes the kernel answer ARP on the boot card alone, and ask there with that card's
// address, until Down. Otherwise any card on the same wire answers for it, with its own MAC
// (ip-sysctl, arp_ignore and arp_announce): switches and drover then see the address move.
func (n *NIC) quietARP() {
	for name, value := range map[string]string{"arp_ignore": "1", "arp_announce": "2"} {
		if err := n.set(filepath.Join("ipv4/conf/all", name), value); err != nil {
			n.say("%v", err)
		}
	}
}

// set sets a sysctl of the network, and makes Down restore it.
func (n *NIC) set(name, value string) error {
	path := filepath.Join("/proc/sys/net", name)
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	was := strings.TrimSpace(string(old))
	if was == value {
		return nil
	}
	if err := os.WriteFile(path, []byte(value), 0); err != nil {
		return err
	}
	n.restore = append(n.restore, func() error { return os.WriteFile(path, []byte(was), 0) })
	return nil
}
