package attack

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drover/e2e/netns"
	"drover/pools"
)

// Addresses of a [Lab].
const (
	ServerAddr = "10.77.0.1"
	DNSAddr    = "10.77.0.53"  // declared as the DNS server; no host has it
	RouterAddr = "10.77.0.254" // declared as the router
	WireAddr   = "10.77.0.100" // the attacker on the boot network
	NodeAddr   = "10.77.1.10"  // node m1
	PodAddr    = "10.244.1.2"  // a pod on m1
	RoutedAddr = "192.168.5.2" // a host of another network
	MachineIP  = "10.77.1.20"  // node m2
	PortIP     = "10.77.1.31"  // node port1, known by its switch port
	FreeAddr   = "10.77.9.9"   // of no host
)

// MACs of a [Lab].
var (
	NodeMAC    = pools.MAC{0x52, 0x54, 0, 0x77, 1, 1} // m1
	MachineMAC = pools.MAC{0x52, 0x54, 0, 0x77, 1, 2} // m2
	LobbyMAC   = pools.MAC{0x52, 0x54, 0, 0x77, 9, 1} // declared in no pool
)

// Lab is the networks of an attack. Each host is a namespace:
//
//	Net      the server, with the bridge br0 of the boot network
//	Wire     an attacker on the boot network
//	Node     node m1 of one tenant, which forwards and masquerades its pods
//	Pod      a pod on m1, behind the address of m1
//	Routed   a host of another network, behind Router
//	Machine  the machine m2 of another tenant
//	Lobby    a machine that no node declares
//
// No host checks source addresses (rp_filter), so the network itself stops no attack.
type Lab struct {
	Net, Wire, Node, Pod, Router, Routed, Machine, Lobby netns.Namespace

	Program string // drover
	id      string
}

// NewLab makes the networks. They are removed with the test.
func NewLab(t testing.TB, program string) *Lab {
	t.Helper()
	netns.Need(t, "iptables", "udhcpc")
	l := &Lab{Program: program, id: fmt.Sprintf("drvatt%d", os.Getpid())}
	l.Net = netns.NewNamespace(t, l.id+"s")
	setSysctl(t, l.Net, "net/ipv4/conf/all/rp_filter", "0")
	setSysctl(t, l.Net, "net/ipv4/conf/default/rp_filter", "0")
	l.Net.IP(t, "link", "add", "br0", "address", "02:00:00:00:00:01", "type", "bridge", "forward_delay", "0")
	l.Net.IP(t, "addr", "add", ServerAddr+"/16", "dev", "br0")
	l.Net.IP(t, "link", "set", "br0", "up")
	l.Wire = l.host(t, "w", "02:00:00:00:00:64")
	l.Net.IP(t, "link", "set", "port-w", "type", "bridge_slave", "learning", "off") // it sends from many MACs
	l.Wire.IP(t, "addr", "add", WireAddr+"/16", "dev", "eth0")
	l.Node = l.host(t, "n", NodeMAC.String())
	l.Node.IP(t, "addr", "add", NodeAddr+"/16", "dev", "eth0")
	l.Router = l.host(t, "r", "02:00:00:00:00:fe")
	l.Router.IP(t, "addr", "add", RouterAddr+"/16", "dev", "eth0")
	l.Pod = l.behind(t, "p", l.Node, "10.244.1.1/24", PodAddr+"/24")
	l.Routed = l.behind(t, "o", l.Router, "192.168.5.1/24", RoutedAddr+"/24")
	if out, err := l.Node.Command("iptables", "-t", "nat", "-A", "POSTROUTING", "-s", "10.244.0.0/16", "-o", "eth0", "-j", "MASQUERADE").CombinedOutput(); err != nil {
		t.Fatalf("iptables: %v\n%s", err, out)
	}
	l.Net.IP(t, "route", "add", "192.168.5.0/24", "via", RouterAddr)
	l.Machine = l.host(t, "m", MachineMAC.String())
	l.Lobby = l.host(t, "x", LobbyMAC.String())
	return l
}

// host makes a host on the boot network, with the interface eth0.
func (l *Lab) host(t testing.TB, name, mac string) netns.Namespace {
	t.Helper()
	n := netns.NewNamespace(t, l.id+name)
	l.Net.Link(t, "port-"+name, n, "eth0")
	setSysctl(t, n, "net/ipv4/conf/all/rp_filter", "0")
	setSysctl(t, n, "net/ipv4/conf/eth0/rp_filter", "0")
	l.Net.IP(t, "link", "set", "port-"+name, "master", "br0", "up")
	n.IP(t, "link", "set", "eth0", "address", mac, "up")
	return n
}

// behind makes a host in a network behind another host, which forwards.
func (l *Lab) behind(t testing.TB, name string, router netns.Namespace, gateway, address string) netns.Namespace {
	t.Helper()
	n := netns.NewNamespace(t, l.id+name)
	router.Link(t, "inside", n, "eth0")
	setSysctl(t, router, "net/ipv4/ip_forward", "1")
	setSysctl(t, router, "net/ipv4/conf/inside/rp_filter", "0")
	router.IP(t, "addr", "add", gateway, "dev", "inside")
	router.IP(t, "link", "set", "inside", "up")
	n.IP(t, "addr", "add", address, "dev", "eth0")
	n.IP(t, "link", "set", "eth0", "up")
	via, _, _ := strings.Cut(gateway, "/")
	n.IP(t, "route", "add", "default", "via", via)
	return n
}

// setSysctl sets a sysctl of a namespace.
func setSysctl(t testing.TB, n netns.Namespace, name, value string) {
	t.Helper()
	if err := n.Do(func() error {
		return os.WriteFile(filepath.Join("/proc/sys", name), []byte(value), 0o600)
	}); err != nil {
		t.Fatal(err)
	}
}
