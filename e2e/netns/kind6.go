package netns

import (
	"testing"
	"time"
)

// The kinds of DHCPv6 clients. A test reads from the server, and from the addresses of the
// interface, how they fare: they report no events.

// Dhclient6 is ISC's. A second one with the same files sends the RELEASE.
func Dhclient6() Kind {
	args := func(c *Client) []string {
		return []string{"dhclient", "-6", "-d", "-v", "-1", "-sf", c.Dir + "/script", "-cf", "conf", "-lf", "state/leases", "-pf", "pid", c.Device}
	}
	return Kind{
		Name: "dhclient -6", Program: "dhclient", Lease: 20 * time.Second, args: args,
		mounts: []string{"touch state/leases"},
		release: func(t testing.TB, c *Client) {
			t.Helper()
			c.Kill()
			if out, err := c.command(append(args(c), "-r")).CombinedOutput(); err != nil {
				t.Fatalf("dhclient -6 -r: %v\n%s", err, out)
			}
		},
	}
}

// Dhcpcd6 is dhcpcd. It is told to ask without a router advertisement.
func Dhcpcd6() Kind {
	k := Dhcpcd()
	k.Name, k.Lease, k.says = "dhcpcd -6", 20*time.Second, nil
	k.conf = `ipv6only
noipv6rs
persistent
duid ll
option dhcp6_name_servers, dhcp6_domain_search
interface cli
ia_na 1
`
	return k
}

// Networkd6 is systemd-networkd. It is told to ask without a router advertisement.
func Networkd6() Kind {
	k := Networkd()
	k.Name, k.Lease, k.says = "systemd-networkd, IPv6", 20*time.Second, nil
	k.conf = `[Match]
Kind=veth
[Network]
DHCP=ipv6
LinkLocalAddressing=ipv6
IPv6AcceptRA=no
[DHCPv6]
WithoutRA=solicit
DUIDType=link-layer
`
	return k
}
