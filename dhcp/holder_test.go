package dhcp_test

import (
	"errors"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp"
	"drover/pools"
	"drover/pools/resolve"
)

// Finding M10: a node was given its address while another machine leased it.
func TestAddressOfARunningLease(t *testing.T) {
	s, _ := newServer()
	lease := &pools.Lease{MAC: stray, Node: "node-x", Expires: noon.Add(time.Hour)}
	s.Farm = farmFunc(func(p *resolve.Plan) { p.Holder, lease.Address = lease, p.Address })
	for name, packet := range map[string]*dhcpv4.DHCPv4{
		"its firmware asks":     message(web1, discover, rom),
		"its firmware takes it": message(web1, request, rom, serverID(serverAddr), requested("10.28.36.1")),
		"its system comes back": message(web1, request, requested("10.28.36.1")),
		"its system renews":     message(web1, request, ciaddr("10.28.36.1")),
		"its system looks anew": message(web1, discover),
	} {
		m, x := s.Reply(packet, noon)
		if _, ok := errors.AsType[*pools.LeasedError](x.Err); m != nil || x.Decision != dhcp.NoAddress || !ok {
			t.Errorf("%s: got %s, decision %q, error %v; want silence until the lease ends", name, x.Reply, x.Decision, x.Err)
		}
	}
	s.Farm = farm{}
	if m, _ := s.Reply(message(web1, discover, rom), noon); m == nil || m.YourIPAddr.String() != "10.28.36.1" {
		t.Error("after the end of the lease the node does not get its address")
	}
}
