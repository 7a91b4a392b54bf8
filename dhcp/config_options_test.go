package dhcp_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/pools"
	"drover/pools/config"
	"drover/pools/resolve"
)

// TestOptionsOfTheConfig: a client that asks for an option gets it, for each
// option that a config may set.
func TestOptionsOfTheConfig(t *testing.T) {
	for code := 1; code < 255; code++ {
		f, err := config.Parse("x.yaml", fmt.Appendf(nil, `
server: {interfaces: [srv], address: %s}
subnets: [{cidr: 10.28.0.0/16}]
tags: {all: {dhcpOptions: {%d: "hex:01020304"}}}
pools: [{name: web, image: i, nodes: [{name: web1, macs: ["%s"], ip: 10.28.0.10}]}]
`, serverAddr, code, web1))
		if err != nil {
			continue // the config refuses it
		}
		s, _ := newServer()
		s.Farm = farmFunc(func(p *resolve.Plan) { *p = *f.Resolve(resolve.Query{MAC: web1}) })
		r, _ := s.Reply(on(t, message(web1, dhcpv4.MessageTypeDiscover, option(55, uint8(code)))), noon)
		if r == nil || string(r.Options[uint8(code)]) != "\x01\x02\x03\x04" {
			t.Errorf("option %d is accepted by the config and not sent", code)
		}
	}
}

// TestForcedOptions: a forced option is sent though the client does not list it. Programs such as
// PXELINUX read it in the packet of the ROM (RFC 5071).
func TestForcedOptions(t *testing.T) {
	s, _ := newServer()
	s.Farm = farmOf(t, `
subnets: [{cidr: 10.28.0.0/16}]
tags:
  all: {dhcpOptions: {"force:208": "hex:f100747e", "force:209": configs/common, 210: /pxe/, "force:ntp-server": 10.28.0.9}}
  quiet: {dhcpOptions: {209: other}}
pools:
  - {name: web, image: i, nodes: [{name: a, macs: ["`+web1.String()+`"], ip: 10.28.36.1}]}
  - {name: lobby, catchall: true, image: i, tags: [quiet], range: 10.28.72.10-10.28.72.20}
`)
	for _, tt := range []struct {
		name string
		in   *dhcpv4.DHCPv4
		want map[uint8]string
	}{
		{"a ROM", message(web1, dhcpv4.MessageTypeDiscover, rom, option(55, 1, 3)), map[uint8]string{208: "\xf1\x00\x74\x7e", 209: "configs/common", 210: "", 42: "\x0a\x1c\x00\x09"}},
		{"a system", message(web1, dhcpv4.MessageTypeDiscover, option(55, 1)), map[uint8]string{208: "\xf1\x00\x74\x7e", 209: "configs/common", 210: ""}},
		{"a later tag does not force", message(stray, dhcpv4.MessageTypeDiscover, option(55, 1)), map[uint8]string{208: "\xf1\x00\x74\x7e", 209: ""}},
		{"which still can be asked for", message(stray, dhcpv4.MessageTypeDiscover, option(55, 209)), map[uint8]string{209: "other"}},
	} {
		r, x := s.Reply(tt.in, noon)
		if r == nil {
			t.Fatalf("%s: %q", tt.name, x.Decision)
		}
		for code, want := range tt.want {
			if got := string(r.Options[code]); got != want {
				t.Errorf("%s: option %d is %q, want %q", tt.name, code, got, want)
			}
		}
	}
}

// TestVendorOptionsOfAClass: a client gets the vendor options of its own vendor class, or else those
// for all (RFC 2132, section 8.4).
func TestVendorOptionsOfAClass(t *testing.T) {
	s, _ := newServer()
	s.Farm = farmOf(t, `
subnets: [{cidr: 10.28.0.0/16}]
tags:
  all:
    dhcpOptions: {43.1: a, "43.1@ACME phone*": b, "43.2@ACME phone*": c, "force:43@Wlan.AP": "hex:f1040a1c0001", "43.1@PXEClient*": d}
pools: [{name: lobby, catchall: true, image: i, range: 10.28.72.10-10.28.72.20}]
`)
	const asks = 43
	for _, tt := range []struct {
		name, class string
		list        uint8
		want        string
	}{
		{"another class", "dhcpcd", asks, "\x01\x01a"},
		{"no class", "", asks, "\x01\x01a"},
		{"a phone", "ACME phone 7", asks, "\x01\x01b\x02\x01c"},
		{"a phone that does not ask", "ACME phone 7", 1, ""},
		{"an access point that does not ask", "Wlan.AP", 1, "\xf1\x04\x0a\x1c\x00\x01"},
		{"a ROM", "PXEClient:Arch:00000:UNDI:002001", 1, "\x06\x01\x08\x01\x01d\xff"},
	} {
		in := message(stray, dhcpv4.MessageTypeDiscover, option(55, tt.list))
		if tt.class != "" {
			in.Options[60] = []byte(tt.class)
		}
		r, x := s.Reply(in, noon)
		if r == nil {
			t.Fatalf("%s: %q", tt.name, x.Decision)
		}
		if got := string(r.Options[43]); got != tt.want {
			t.Errorf("%s: 43 is %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestInfiniteLease: a lease without an end has no times of its renewal (RFC 2131, section
// 3.3); any other one never looks like it.
func TestInfiniteLease(t *testing.T) {
	for lease, want := range map[pools.Duration]string{
		pools.Infinite:                  "\xff\xff\xff\xff",
		pools.Infinite - 1:              "\xff\xff\xff\xfe",
		pools.Duration(5 * time.Minute): "\x00\x00\x01\x2c",
	} {
		s, _ := newServer()
		s.Farm = farmFunc(func(p *resolve.Plan) { p.Lease = lease })
		r, _ := s.Reply(on(t, message(web1, dhcpv4.MessageTypeDiscover, option(55, 51, 58, 59))), noon)
		if r == nil || string(r.Options[51]) != want {
			t.Fatalf("%s: got %v, want a lease of %x", lease, r, want)
		}
		if renews := len(r.Options[58])+len(r.Options[59]) > 0; renews == (lease == pools.Infinite) {
			t.Errorf("%s: T1 %x, T2 %x", lease, r.Options[58], r.Options[59])
		}
	}
}
