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
