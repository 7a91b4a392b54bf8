package dhcp6_test

import (
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv6"

	"drover/pools/config"
)

// TestMatchUUID: a node is known by the UUID in the DUID of its firmware, and by that of
// its iPXE, which has it in the other byte order.
func TestMatchUUID(t *testing.T) {
	farm, err := config.Parse("drover.yaml", []byte(`server: {interfaces: [lo], address: 10.28.0.2}
subnets: [{cidr: "fd00:28::/64"}]
pools:
  - name: web
    image: debian-12
    nodes: [{name: m1, match: {uuid: 4c4c4544-0034-4210-8035-b4c04f4d3132}, ip6: "fd00:28::10"}]
`))
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	w.server.Farm = farm
	for uuid, known := range map[[16]byte]bool{
		{0x44, 0x45, 0x4c, 0x4c, 0x34, 0x00, 0x10, 0x42, 0x80, 0x35, 0xb4, 0xc0, 0x4f, 0x4d, 0x31, 0x32}: true,
		{0x4c, 0x4c, 0x45, 0x44, 0x00, 0x34, 0x42, 0x10, 0x80, 0x35, 0xb4, 0xc0, 0x4f, 0x4d, 0x31, 0x32}: true,
		{0x4c, 0x4c, 0x45, 0x44, 0x00, 0x34, 0x42, 0x10, 0x80, 0x35, 0xb4, 0xc0, 0x4f, 0x4d, 0x31, 0x33}: false,
	} {
		reply, x := w.send(stray, message(dhcpv6.MessageTypeSolicit, stray, ia(7), func(d dhcpv6.DHCPv6) {
			d.UpdateOption(dhcpv6.OptClientID(&dhcpv6.DUIDUUID{UUID: uuid}))
		}))
		if (reply != nil) != known || known && (x.Plan.Node != "m1" || x.Plan.Matched != "uuid") {
			t.Errorf("%x: got %v, plan %+v", uuid, reply, x.Plan)
		}
	}
}
