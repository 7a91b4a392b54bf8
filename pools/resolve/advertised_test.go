package resolve_test

import (
	"net/netip"
	"testing"

	"drover/pools"
	"drover/pools/resolve"
)

// TestBootAddress: a machine of each network gets the address that the server has there,
// in next-server and in URLs (facts: a server with two interfaces named the address of the
// first to the machines of both).
func TestBootAddress(t *testing.T) {
	local := func(texts ...string) (all []resolve.Local) {
		for i := 0; i < len(texts); i += 2 {
			all = append(all, resolve.Local{Interface: texts[i], Prefix: netip.MustParsePrefix(texts[i+1])})
		}
		return all
	}
	subnets := func(edit func([]pools.Subnet)) []pools.Subnet {
		all := []pools.Subnet{{CIDR: netip.MustParsePrefix("10.77.0.0/16")}, {CIDR: netip.MustParsePrefix("10.78.0.0/16")}, {CIDR: netip.MustParsePrefix("10.79.0.0/16")}}
		if edit != nil {
			edit(all)
		}
		return all
	}
	two := local("eth1", "10.77.0.1/16", "eth2", "10.78.0.1/16")
	for _, tt := range []struct {
		name    string
		address string // server.address
		local   []resolve.Local
		subnets []pools.Subnet
		tftp    string    // server.tftp
		want    [3]string // boot address of a machine in each subnet
		ids     [3]string
	}{
		{
			"found on the interfaces; a relayed network gets the first", "", two, subnets(nil), ":69",
			[3]string{"10.77.0.1", "10.78.0.1", "10.77.0.1"}, [3]string{"10.77.0.1", "10.78.0.1", "10.77.0.1"},
		},
		{
			"server.address is for its own network, and for those without an address", "10.77.0.9", two, subnets(nil), "0.0.0.0:69",
			[3]string{"10.77.0.9", "10.78.0.1", "10.77.0.9"}, [3]string{"", "10.78.0.1", ""},
		},
		{
			"server.address in no network of the server is for all", "192.0.2.1", two, subnets(nil), "",
			[3]string{"192.0.2.1", "192.0.2.1", "192.0.2.1"}, [3]string{},
		},
		{
			"the config names one", "10.77.0.1", two, subnets(func(s []pools.Subnet) { s[1].Address, s[2].Address = addr("10.78.0.5"), addr("10.79.0.5") }), "",
			[3]string{"10.77.0.1", "10.78.0.5", "10.79.0.5"}, [3]string{"10.77.0.1", "10.78.0.5", "10.79.0.5"},
		},
		{
			"subnets of one layer-2 network", "", two, subnets(func(s []pools.Subnet) { s[1].Network, s[2].Network = "hall", "hall" }), "",
			[3]string{"10.77.0.1", "10.78.0.1", "10.78.0.1"}, [3]string{"10.77.0.1", "10.78.0.1", "10.78.0.1"},
		},
		{
			"TFTP is bound to one address, as the config says", "", two, subnets(nil), "10.77.0.1:69",
			[3]string{"10.77.0.1", "10.77.0.1", "10.77.0.1"}, [3]string{"10.77.0.1", "10.77.0.1", "10.77.0.1"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := pools.Server{Interfaces: []string{"eth1", "eth2"}, HTTP: ":8080", HTTPS: ":443", TFTP: tt.tftp}
			if tt.address != "" {
				server.Address = addr(tt.address)
			}
			var nodes []pools.Node
			for i, s := range tt.subnets {
				ip := s.CIDR.Addr().As4()
				ip[3] = 50
				nodes = append(nodes, pools.Node{Name: string(rune('a' + i)), MACs: []pools.MAC{{2, 5: byte(i)}}, IP: netip.AddrFrom4(ip)})
			}
			c := resolve.Checked{Listeners: server, Local: tt.local}
			c.Config = pools.Config{Server: server, Subnets: tt.subnets, Pools: []pools.Pool{{Name: "web", Image: "debian-12", Nodes: nodes}}}
			f := resolve.NewFarm(c)
			for i, n := range nodes {
				for _, q := range []resolve.Query{
					{MAC: n.MACs[0], IPXE: true},             // by HTTP
					{MAC: n.MACs[0], IPXE: true, Link: n.IP}, // by DHCP
				} {
					p := f.Resolve(q)
					if got := p.Boot.Server.String(); got != tt.want[i] {
						t.Errorf("%s boots from %s, want %s", n.Name, got, tt.want[i])
					}
					if want := "http://" + tt.want[i] + ":8080" + pools.ScriptPath + n.MACs[0].Dashed(); p.Boot.File != want {
						t.Errorf("%s loads %s, want %s", n.Name, p.Boot.File, want)
					}
					if got, want := p.Advertised.SecureURL, "https://"+tt.want[i]; got != want {
						t.Errorf("%s: HTTPS by %s, want %s", n.Name, got, want)
					}
					if got := p.Advertised.ID; tt.ids[i] == "" && got.IsValid() || tt.ids[i] != "" && got.String() != tt.ids[i] {
						t.Errorf("%s: server identifier %s, want %q", n.Name, got, tt.ids[i])
					}
				}
				if got := f.AdvertisedAt(n.IP).Address.String(); got != tt.want[i] {
					t.Errorf("a client at %s is told %s, want %s", n.IP, got, tt.want[i])
				}
				if a := addr(tt.want[i]); !f.IsLocal(a) {
					t.Errorf("%s is not an address of the server", a)
				}
			}
		})
	}
}

// TestBootAddress6: each IPv6 network gets the address that the server has there.
// server.address is for its family alone, and without IPv4 the address of IPv6 is the
// server's.
func TestBootAddress6(t *testing.T) {
	prefixes := func(texts ...string) (all []netip.Prefix) {
		for _, text := range texts {
			all = append(all, netip.MustParsePrefix(text))
		}
		return all
	}
	six := prefixes("fd00:77::/64", "fd00:78::/64", "fd00:79::/64")
	for _, tt := range []struct {
		name        string
		address     string
		local       []netip.Prefix
		subnets     []netip.Prefix
		want        []string
		ofTheServer string
	}{
		{"found on the interface", "", prefixes("fd00:77::1/64", "fd00:78::1/64"), six, []string{"fd00:77::1", "fd00:78::1", "fd00:77::1"}, "fd00:77::1"},
		{"server.address is for its own network, and for those without an address", "fd00:77::9", prefixes("fd00:77::1/64", "fd00:78::1/64"), six,
			[]string{"fd00:77::9", "fd00:78::1", "fd00:77::9"}, "fd00:77::9"},
		{"server.address in no network of the server is for all", "2001:db8::1", prefixes("fd00:77::1/64", "fd00:78::1/64"), six,
			[]string{"2001:db8::1", "2001:db8::1", "2001:db8::1"}, "2001:db8::1"},
		{"no address", "", nil, six, []string{"invalid IP", "invalid IP", "invalid IP"}, "invalid IP"},
		{"both families, server.address of IPv4", "10.77.0.9", prefixes("10.77.0.1/16", "fd00:77::1/64"), prefixes("10.77.0.0/16", "fd00:77::/64"),
			[]string{"10.77.0.9", "fd00:77::1"}, "10.77.0.9"},
		{"both families, server.address of IPv6", "2001:db8::1", prefixes("10.77.0.1/16", "fd00:77::1/64"), prefixes("10.77.0.0/16", "fd00:77::/64"),
			[]string{"10.77.0.1", "2001:db8::1"}, "10.77.0.1"},
		{"both families, without an IPv4 address", "", prefixes("fd00:77::1/64"), prefixes("10.77.0.0/16", "fd00:77::/64"),
			[]string{"invalid IP", "fd00:77::1"}, "invalid IP"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := pools.Server{Interfaces: []string{"eth1"}, HTTP: ":80", TFTP: ":69"}
			if tt.address != "" {
				server.Address = addr(tt.address)
			}
			c := resolve.Checked{Listeners: server, Config: pools.Config{Server: server}}
			for _, p := range tt.subnets {
				c.Config.Subnets = append(c.Config.Subnets, pools.Subnet{CIDR: p})
			}
			for _, p := range tt.local {
				if l := (resolve.Local{Interface: "eth1", Prefix: p}); p.Addr().Is6() {
					c.Local6 = append(c.Local6, l)
				} else {
					c.Local = append(c.Local, l)
				}
			}
			f := resolve.NewFarm(c)
			for i, want := range tt.want {
				if got, from := f.BootAddress(i); got.String() != want {
					t.Errorf("%s: got %s (%s), want %s", tt.subnets[i], got, from, want)
				}
			}
			if got := f.Address().String(); got != tt.ofTheServer {
				t.Errorf("the server: got %s, want %s", got, tt.ofTheServer)
			}
		})
	}
}

// TestBootAddressWithoutSubnets: in proxy mode the config may have no subnets. The networks
// of the interfaces count.
func TestBootAddressWithoutSubnets(t *testing.T) {
	server := pools.Server{Interfaces: []string{"eth1", "eth2"}, DHCP: pools.DHCPProxy, HTTP: ":80"}
	f := resolve.NewFarm(resolve.Checked{
		Listeners: server, Config: pools.Config{Server: server, Pools: []pools.Pool{{Name: "all", CatchAll: true, Image: "debian-12"}}},
		Local: []resolve.Local{{Interface: "eth1", Prefix: netip.MustParsePrefix("10.77.0.1/16")}, {Interface: "eth2", Prefix: netip.MustParsePrefix("10.78.0.1/16")}},
	})
	for link, want := range map[string]string{"10.77.0.1": "10.77.0.1", "10.78.0.1": "10.78.0.1", "10.99.0.1": "10.77.0.1"} {
		if got := f.Resolve(resolve.Query{MAC: pools.MAC{2}, Link: addr(link)}).Boot.Server.String(); got != want {
			t.Errorf("asked at %s it boots from %s, want %s", link, got, want)
		}
	}
	lease := pools.Lease{MAC: pools.MAC{2}, Address: addr("10.78.3.4"), Pool: "all"}
	if got := f.ResolveLeased(resolve.Query{MAC: pools.MAC{2}, IPXE: true}, lease).Advertised.URL; got != "http://10.78.0.1" {
		t.Errorf("by HTTP it is told %s, want http://10.78.0.1", got)
	}
}

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }
