package server

import (
	"encoding/binary"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp"
	packet "drover/dhcp/wire"
	"drover/pools"
	"drover/pools/boots"
	"drover/pools/resolve"
)

const retiredMain = `server: {dhcp: "off", address: 10.28.0.2, brake: {nodes: 0}%s}
include: conf.d/*.yaml
subnets: [{cidr: 10.28.0.0/16}]
pools:
  - {name: lobby, catchall: true, image: debian-12, range: 10.28.0.40-10.28.0.240}
`

// cephNodes is the number of nodes of conf.d/ceph.yaml. The addresses of those from cephInRange on are
// in the range of the lobby: there, unknown hardware that renews would keep them too.
const cephNodes, cephInRange = 40, 20

// writeCeph writes the file with the nodes.
func writeCeph(t *testing.T) {
	t.Helper()
	var b strings.Builder
	b.WriteString("pools:\n  - name: ceph\n    image: debian-12\n    nodes:\n")
	for i := range cephNodes {
		fmt.Fprintf(&b, "      - {name: osd-%d, macs: [\"%s\"], ip: %s}\n", i, cephMAC(i), cephIP(i))
	}
	if err := os.WriteFile("conf.d/ceph.yaml", []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

func cephMAC(i int) pools.MAC { return pools.MAC{0x52, 0x54, 0, 1, 0, byte(i)} }

func cephIP(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 28, 0, byte(20 + i)}) }

// ask sends a REQUEST for an address, and returns the type of the answer: "" for silence. From is
// the address in ciaddr, of a renewal.
func ask(s *Server, mac pools.MAC, from, requested netip.Addr) string {
	var b [236]byte
	b[0], b[1], b[2] = 1, 1, 6
	copy(b[packet.ChaddrAt:], mac[:])
	if from.IsValid() {
		copy(b[packet.CiaddrAt:], from.AsSlice())
	}
	request := binary.BigEndian.AppendUint32(b[:], 0x63825363)
	request = append(request, 53, 1, byte(dhcpv4.MessageTypeRequest))
	if requested.IsValid() {
		request = append(append(request, 50, 4), requested.AsSlice()...)
	}
	r := dhcp.Responder{Farm: s.Machines, Leases: s.Store.Leases, Address: netip.MustParseAddr("10.28.0.2")}
	_, x := r.ReplyTo(append(request, 255), time.Now())
	return x.Reply
}

func startRetired(t *testing.T) *Server {
	t.Helper()
	s, err := New(Options{Config: "drover.yaml", State: "state", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestRetiredNodes: a file with 40 nodes is gone for a while. Each renewal is acknowledged, no
// stranger gets an address of theirs, no history is lost, across a restart too; and when the file is
// back everything is as it was.
func TestRetiredNodes(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(more string) {
		t.Helper()
		if err := os.WriteFile("drover.yaml", fmt.Appendf(nil, retiredMain, more), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir("conf.d", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("conf.d/other.yaml", []byte("tags: {t: {}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	write("")
	writeCeph(t)
	s := startRetired(t)
	defer func() { s.Close() }()
	for i := range cephNodes {
		s.Store.Boots.Discover(s.Live.Farm().Resolve(resolve.Query{MAC: cephMAC(i)}), time.Now().Add(-3*time.Hour))
	}
	renewAll := func(when, want string) {
		t.Helper()
		for i := range cephNodes {
			if got := ask(s, cephMAC(i), cephIP(i), netip.Addr{}); got != want {
				t.Fatalf("%s: the renewal of osd-%d gets %q, want %q", when, i, got, want)
			}
		}
	}
	history := func(when string, want int) {
		t.Helper()
		got := 0
		for _, b := range s.Store.Boots.List() {
			if strings.HasPrefix(b.Node, "osd-") {
				got++
			}
		}
		if got != want {
			t.Errorf("%s: %d boots are known, want %d", when, got, want)
		}
	}
	reload := func() {
		t.Helper()
		if err := s.Reload("test"); err != nil {
			t.Fatal(err)
		}
	}
	renewAll("before", "ACK")
	if err := os.Remove("conf.d/ceph.yaml"); err != nil {
		t.Fatal(err)
	}
	reload()
	checkRetired(t, s)
	renewAll("the file is gone", "ACK")
	history("the file is gone", cephNodes)
	s.Close()
	s = startRetired(t)
	checkRetired(t, s)
	renewAll("after a restart", "ACK")
	history("after a restart", cephNodes)
	writeCeph(t)
	reload()
	renewAll("the file is back", "ACK")
	history("the file is back", cephNodes)
	if n := len(s.Live.Farm().Retired()); n != 0 {
		t.Errorf("the file is back, and %d nodes are retired", n)
	}
	s.Close()
	if err := os.Remove("conf.d/ceph.yaml"); err != nil {
		t.Fatal(err)
	}
	s = startRetired(t)
	renewAll("lost while the server was down", "ACK")
	history("lost while the server was down", cephNodes)
	write(`, retire: "0"`)
	reload()
	history("without a time", 0)
	for i := range cephInRange {
		if got := ask(s, cephMAC(i), cephIP(i), netip.Addr{}); got != "NAK" {
			t.Errorf("without a time: the renewal of osd-%d gets %q, want NAK", i, got)
		}
	}
}

// checkRetired checks the farm that has lost its nodes.
func checkRetired(t *testing.T, s *Server) {
	t.Helper()
	if n := len(s.Live.Farm().Retired()); n != cephNodes {
		t.Fatalf("%d nodes are retired, want %d", n, cephNodes)
	}
	for _, b := range boots.MarkStuck(s.boots().List(), time.Now()) {
		if b.Stuck != nil {
			t.Fatalf("the boot of retired node %s is stuck", b.Node)
		}
	}
	for i := range cephNodes {
		if got := ask(s, pools.MAC{0x52, 0x54, 0, 9, 0, byte(i)}, cephIP(i), netip.Addr{}); got == "ACK" {
			t.Fatalf("a stranger gets the address of osd-%d", i)
		}
		p := s.Machines.Resolve(resolve.Query{MAC: pools.MAC{0x52, 0x54, 0, 8, 0, byte(i)}, Link: netip.MustParseAddr("10.28.0.2"), Firmware: pools.BIOS})
		if a, _, err := s.Store.Leases.Offer(p, cephIP(i), time.Now()); err != nil || a == cephIP(i) {
			t.Fatalf("a new machine is offered %s, the address of osd-%d: %v", a, i, err)
		}
		if plan, err := s.scripts.Machine(cephMAC(i), cephIP(i)); err == nil || plan != nil && plan.Node == fmt.Sprint("osd-", i) {
			t.Fatalf("HTTP serves the retired node osd-%d: %v", i, err)
		}
		if _, own := s.Machines.Owns(cephIP(i), cephMAC(i)); !own {
			t.Fatalf("the address of osd-%d is not its own", i)
		}
	}
}
