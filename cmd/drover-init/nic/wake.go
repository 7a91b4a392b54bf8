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
// carrier, and hears nothing. An error is no reason to end a boot. Down takes them down again.
func (n *NIC) Wake() {
	links, err := whole(netlink.LinkList)
	if err != nil {
		n.say("list network cards: %v", err)
	}
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
	path := filepath.Join("/proc/sys/net/ipv6/conf", card, "disable_ipv6")
	old, err := os.ReadFile(path)
	if was := strings.TrimSpace(string(old)); err == nil && was != "1" && os.WriteFile(path, []byte("1"), 0) == nil {
		n.restore = append(n.restore, func() error { return os.WriteFile(path, []byte(was), 0) })
	}
}
