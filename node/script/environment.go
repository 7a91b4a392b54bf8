package script

import (
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"

	"drover/node/nic"
)

// LeaseEnv returns the variables that LTSP gives to its scripts. Device is the name that
// the running system has for the boot network card. A variable without a value is empty.
func LeaseEnv(n *nic.NIC, device, hostname string) []string {
	l := n.Lease
	address, mask, broadcast, proto := "", "", "", ""
	if a := l.Address.Addr(); a.Is4() {
		address, proto = a.String(), "dhcp"
		mask, broadcast = net.IP(net.CIDRMask(l.Address.Bits(), 32)).String(), lastAddress(l.Address).String()
	}
	gateway, dns := "", [2]string{}
	for _, r := range l.Routes {
		if r.To.Bits() == 0 && r.Via.IsValid() {
			gateway = r.Via.String()
		}
	}
	var servers []string
	for i, a := range l.DNS {
		servers = append(servers, a.String())
		if i < len(dns) {
			dns[i] = a.String()
		}
	}
	domain := ""
	if len(l.Search) > 0 {
		domain = l.Search[0]
	}
	return []string{
		"DEVICE=" + device,
		"MAC_ADDRESS=" + n.MAC.String(),
		"IP_ADDRESS=" + l.Address.Addr().String(),
		"GATEWAY=" + gateway,
		"DNS_SERVER=" + strings.Join(servers, " "),
		"HOSTNAME=" + hostname,
		"SERVER=" + n.Server,
		"IPCONFIG_DEVICE=" + device,
		"IPCONFIG_PROTO=" + proto,
		"IPCONFIG_IPV4PROTO=" + proto,
		"IPCONFIG_IPV4ADDR=" + address,
		"IPCONFIG_IPV4NETMASK=" + mask,
		"IPCONFIG_IPV4BROADCAST=" + broadcast,
		"IPCONFIG_IPV4GATEWAY=" + gateway,
		"IPCONFIG_IPV4DNS0=" + dns[0],
		"IPCONFIG_IPV4DNS1=" + dns[1],
		"IPCONFIG_HOSTNAME=" + hostname,
		"IPCONFIG_DNSDOMAIN=" + domain,
		"IPCONFIG_ROOTSERVER=" + n.Server,
	}
}

// lastAddress returns the broadcast address of an IPv4 network.
func lastAddress(p netip.Prefix) netip.Addr {
	b := p.Addr().As4()
	for i := p.Bits(); i < 32; i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	return netip.AddrFrom4(b)
}

// ConfigEnv returns the operator's variables.
func ConfigEnv(env map[string]string) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if name != "" && !strings.ContainsAny(name+env[name], "\x00") && !strings.Contains(name, "=") {
			all = append(all, name+"="+env[name])
		}
	}
	return all
}
