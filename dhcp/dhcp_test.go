package dhcp_test

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp"
	"drover/e2e/dhcptest"
	"drover/pools/config"
	"drover/pools/resolve"
)

var _ dhcp.Resolver = (*resolve.Farm)(nil)

// The machines, addresses and helpers of the tests.
var (
	serverAddr, otherAddr, noon = dhcptest.ServerAddr, dhcptest.OtherAddr, dhcptest.Noon

	web1, web1b, stray, foreign = dhcptest.Web1, dhcptest.Web1b, dhcptest.Stray, dhcptest.Foreign

	mac, message, option, text, arch, rom = dhcptest.MAC, dhcptest.Message, dhcptest.Option, dhcptest.Text, dhcptest.Arch, dhcptest.ROM

	requested, serverID, ciaddr, giaddr = dhcptest.Requested, dhcptest.ServerID, dhcptest.Ciaddr, dhcptest.Giaddr

	newLeases, errDisk = dhcptest.NewLeases, dhcptest.ErrDisk
)

type (
	farm     = dhcptest.Farm
	farmFunc = dhcptest.FarmFunc
	leases   = dhcptest.Leases
)

// responder is a [dhcp.Responder] for packets in the types of the library.
type responder struct {
	dhcp.Responder
	last *dhcp.Message // the last reply; nil for silence
}

func newServer() (*responder, *leases) {
	l := newLeases()
	return &responder{Responder: dhcp.Responder{Farm: farm{}, Leases: l, Address: serverAddr}}, l
}

// Reply answers a packet, and passes both through the wire format.
func (s *responder) Reply(d *dhcpv4.DHCPv4, now time.Time) (*dhcpv4.DHCPv4, dhcp.Exchange) {
	return s.handle(d.ToBytes(), now)
}

// ReplyBoot is Reply for port 4011.
func (s *responder) ReplyBoot(d *dhcpv4.DHCPv4, now time.Time) (*dhcpv4.DHCPv4, dhcp.Exchange) {
	var req dhcp.Request
	req.Parse(d.ToBytes())
	m, x := s.Responder.ReplyBoot(&req, now)
	return s.parsed(m), x
}

func (s *responder) handle(b []byte, now time.Time) (*dhcpv4.DHCPv4, dhcp.Exchange) {
	var req dhcp.Request
	req.Parse(b)
	if d, err := dhcpv4.FromBytes(b); err == nil && !req.Giaddr.IsValid() {
		// A client sends from its address once it has one.
		if from, _ := netip.AddrFromSlice(d.ClientIPAddr.To4()); !from.IsUnspecified() {
			req.From = from
		}
	}
	m, x := s.Responder.Reply(&req, now)
	return s.parsed(m), x
}

func (s *responder) parsed(m *dhcp.Message) *dhcpv4.DHCPv4 {
	if s.last = m; m == nil {
		return nil
	}
	r, err := dhcpv4.FromBytes(m.Append(nil))
	if err != nil {
		panic(err)
	}
	return r
}

// wait waits until the last reply may be sent.
func (s *responder) wait() error {
	if s.last == nil || s.last.Wait == nil {
		return nil
	}
	return s.last.Wait()
}

// destination returns the receiver of the last reply.
func (s *responder) destination() (addr, mac string) {
	to, hw := s.last.Destination()
	return to.String(), hw.String()
}

// farmOf returns the farm of a config file. text is the file without its server
// section.
func farmOf(t testing.TB, text string) *resolve.Farm {
	t.Helper()
	path := filepath.Join(t.TempDir(), "drover.yaml")
	if err := os.WriteFile(path, []byte("server: {address: 10.28.0.2, interfaces: [srv]}\n"+text), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// on returns a packet after a pass through the wire format, as the server
// receives it.
func on(t testing.TB, d *dhcpv4.DHCPv4) *dhcpv4.DHCPv4 {
	t.Helper()
	p, err := dhcpv4.FromBytes(d.ToBytes())
	if err != nil {
		t.Fatal(err)
	}
	return p
}
