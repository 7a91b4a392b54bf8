package dhcp_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp"
	"drover/pools"
	"drover/pools/config"
	"drover/pools/resolve"
)

// BenchmarkReply measures the work for one packet: parse, resolve, reply,
// marshal.
func BenchmarkReply(b *testing.B) {
	discovers := firstDiscovers()
	for _, bb := range []struct {
		name   string
		packet *dhcpv4.DHCPv4
	}{
		{"discover", discovers["ovmf-pxe"]},
		{"request", message(web1, request, serverID(serverAddr), requested("10.28.36.1"))},
		{"not ours", message(foreign, discover)},
	} {
		b.Run(bb.name, func(b *testing.B) {
			s, _ := newServer()
			packet := bb.packet.ToBytes()
			var req dhcp.Request
			b.ReportAllocs()
			for b.Loop() {
				answer(&s.Responder, &req, packet)
			}
		})
	}
}

// BenchmarkFarm measures the same for farms of several sizes, with two MACs for
// each node. The cost of a packet must not depend on the size of the farm.
func BenchmarkFarm(b *testing.B) {
	for _, nodes := range []int{10, 10_000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			farm := largeFarm(b, nodes)
			s := &dhcp.Responder{Farm: farm, Address: serverAddr}
			packet := message(web1, discover, arch(7), text(60, "PXEClient:Arch:00007:UNDI:003000")).ToBytes()
			var req dhcp.Request
			i := 0
			for b.Loop() {
				i = (i + 7919) % (2 * nodes)
				m := largeMAC(i)
				copy(packet[28:], m[:])
				answer(s, &req, packet)
			}
		})
	}
}

func answer(s *dhcp.Responder, req *dhcp.Request, packet []byte) []byte {
	req.Parse(packet)
	m, _ := s.Reply(req, noon)
	if m == nil {
		return nil
	}
	return m.Append(nil)
}

// largeMAC returns MAC i of a large farm, which belongs to node i/2.
func largeMAC(i int) (m pools.MAC) {
	m[0] = 0x52
	binary.BigEndian.PutUint32(m[2:], uint32(i))
	return m
}

func largeFarm(b *testing.B, nodes int) *resolve.Farm {
	var y strings.Builder
	y.WriteString("server: {interfaces: [eth1], address: 10.28.0.2}\nsubnets: [{cidr: 10.28.0.0/16}]\npools:\n- name: p\n  image: i\n  nodes:\n")
	for i := range nodes {
		fmt.Fprintf(&y, "  - {name: n%d, macs: [%q, %q], ip: 10.28.%d.%d}\n", i, largeMAC(2*i), largeMAC(2*i+1), 1+i/250, 1+i%250)
	}
	farm, err := config.Parse("large.yaml", []byte(y.String()))
	if err != nil {
		b.Fatal(err)
	}
	if p := farm.Resolve(resolve.Query{MAC: largeMAC(2*nodes - 1), Link: serverAddr}); p == nil {
		b.Fatal("the last MAC is nobody's")
	}
	return farm
}
