package nic

import (
	"net"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/rfc1035label"
)

// ack returns an ACK for 10.77.0.11 from 10.77.0.1 with these options.
func ack(options ...dhcpv4.Option) *dhcpv4.DHCPv4 {
	p := &dhcpv4.DHCPv4{YourIPAddr: net.IPv4(10, 77, 0, 11), Options: dhcpv4.Options{}}
	p.UpdateOption(dhcpv4.OptServerIdentifier(net.IPv4(10, 77, 0, 1)))
	p.UpdateOption(dhcpv4.OptSubnetMask(net.CIDRMask(24, 32)))
	for _, o := range options {
		p.UpdateOption(o)
	}
	return p
}

func TestReadLease(t *testing.T) {
	basic := Lease{Address: netip.MustParsePrefix("10.77.0.11/24"), Server: netip.MustParseAddr("10.77.0.1")}
	with := func(change func(*Lease)) Lease {
		l := basic
		change(&l)
		return l
	}
	toAll := netip.MustParsePrefix("0.0.0.0/0")
	router := netip.MustParseAddr("10.77.0.254")
	for _, tt := range []struct {
		name    string
		options []dhcpv4.Option
		want    Lease
	}{
		{"an address alone", nil, basic},
		{
			"all of it",
			[]dhcpv4.Option{
				dhcpv4.OptRouter(net.IPv4(10, 77, 0, 254), net.IPv4(10, 77, 0, 253)),
				dhcpv4.OptDNS(net.IPv4(10, 77, 0, 1), net.IPv4(10, 77, 0, 2)),
				dhcpv4.OptDomainName("example.org"),
				dhcpv4.OptDomainSearch(&rfc1035label.Labels{Labels: []string{"example.org", "example.net"}}),
				dhcpv4.OptIPAddressLeaseTime(5 * time.Minute),
				dhcpv4.OptGeneric(dhcpv4.OptionInterfaceMTU, []byte{0x23, 0x28}),
			},
			with(func(l *Lease) {
				l.Routes = []Route{{toAll, router}}
				l.DNS = []netip.Addr{netip.MustParseAddr("10.77.0.1"), netip.MustParseAddr("10.77.0.2")}
				l.Search = []string{"example.org", "example.net"}
				l.For = 5 * time.Minute
				l.MTU = 9000
			}),
		},
		{
			"classless routes instead of the router",
			[]dhcpv4.Option{
				dhcpv4.OptRouter(net.IPv4(10, 77, 0, 1)),
				dhcpv4.OptClasslessStaticRoute(
					&dhcpv4.Route{Dest: &net.IPNet{IP: net.IPv4(10, 80, 1, 0), Mask: net.CIDRMask(16, 32)}, Router: net.IPv4zero},
					&dhcpv4.Route{Dest: &net.IPNet{IP: net.IPv4zero, Mask: net.CIDRMask(0, 32)}, Router: net.IPv4(10, 77, 0, 254)}),
			},
			with(func(l *Lease) {
				l.Routes = []Route{{netip.MustParsePrefix("10.80.0.0/16"), netip.Addr{}}, {toAll, router}}
			}),
		},
		{"for ever", []dhcpv4.Option{dhcpv4.OptGeneric(dhcpv4.OptionIPAddressLeaseTime, []byte{255, 255, 255, 255})}, basic},
		{"an MTU too small for IPv4", []dhcpv4.Option{dhcpv4.OptGeneric(dhcpv4.OptionInterfaceMTU, []byte{0, 68})}, basic},
		{"an MTU of one byte", []dhcpv4.Option{dhcpv4.OptGeneric(dhcpv4.OptionInterfaceMTU, []byte{9})}, basic},
		{"a domain that would be a line of its own", []dhcpv4.Option{dhcpv4.OptDomainName("x\nnameserver 6.6.6.6")}, basic},
		{"zero routers", []dhcpv4.Option{dhcpv4.OptRouter(net.IPv4zero)}, basic},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := readLease(ack(tt.options...))
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

func TestReadLeaseErrors(t *testing.T) {
	with := func(change func(*dhcpv4.DHCPv4)) *dhcpv4.DHCPv4 {
		p := ack()
		change(p)
		return p
	}
	for _, tt := range []struct {
		name string
		ack  *dhcpv4.DHCPv4
		want string
	}{
		{"no address", with(func(p *dhcpv4.DHCPv4) { p.YourIPAddr = nil }), "which no node can have"},
		{"zero address", with(func(p *dhcpv4.DHCPv4) { p.YourIPAddr = net.IPv4zero }), "offers address 0.0.0.0"},
		{"broadcast", with(func(p *dhcpv4.DHCPv4) { p.YourIPAddr = net.IPv4bcast }), "which no node can have"},
		{"multicast", with(func(p *dhcpv4.DHCPv4) { p.YourIPAddr = net.IPv4(224, 0, 0, 1) }), "which no node can have"},
		{"loopback", with(func(p *dhcpv4.DHCPv4) { p.YourIPAddr = net.IPv4(127, 0, 0, 1) }), "which no node can have"},
		{"no mask", with(func(p *dhcpv4.DHCPv4) { p.DeleteOption(dhcpv4.OptionSubnetMask) }), "10.77.0.1 offers 10.77.0.11 without a valid subnet mask"},
		{"mask with holes", ack(dhcpv4.OptSubnetMask(net.IPv4Mask(255, 0, 255, 0))), "without a valid subnet mask"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := readLease(tt.ack); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want %q in it", err, tt.want)
			}
		})
	}
}

func TestResolvConf(t *testing.T) {
	l := Lease{DNS: []netip.Addr{netip.MustParseAddr("10.77.0.1")}, Search: []string{"a.example", "b.example"}}
	want := "# from DHCP, by drover-init\nnameserver 10.77.0.1\nsearch a.example b.example\n"
	if got := l.ResolvConf(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := (Lease{Search: []string{"a.example"}}).ResolvConf(); got != "" {
		t.Errorf("without a server: got %q, want nothing", got)
	}
}

func FuzzReadLease(f *testing.F) {
	f.Add(ack(dhcpv4.OptRouter(net.IPv4(10, 77, 0, 1)), dhcpv4.OptDomainName("example.org")).ToBytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := dhcpv4.FromBytes(b)
		if err != nil {
			return
		}
		l, err := readLease(p)
		if err != nil {
			return
		}
		if !l.Address.IsValid() || l.Address.Addr().IsUnspecified() {
			t.Errorf("accepted address %s", l.Address)
		}
		for _, r := range l.Routes {
			if !r.To.IsValid() {
				t.Errorf("accepted route %+v", r)
			}
		}
		for line := range strings.Lines(l.ResolvConf()) {
			if !strings.HasPrefix(line, "nameserver ") && !strings.HasPrefix(line, "search ") && !strings.HasPrefix(line, "#") {
				t.Errorf("resolv.conf has line %q", line)
			}
		}
	})
}
