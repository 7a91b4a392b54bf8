package dhcp_test

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp"
)

// FuzzReply sends any bytes to the server. What it answers must be a reply to
// just that request, parse again, fit a frame, and give away only addresses
// that belong to the one who asks.
func FuzzReply(f *testing.F) {
	for _, d := range firstDiscovers() {
		f.Add(d.ToBytes())
		d.Options[53] = []byte{byte(request)}
		d.Options[50] = []byte{10, 28, 36, 1}
		f.Add(d.ToBytes())
		d.ClientIPAddr = []byte{10, 28, 36, 2}
		f.Add(d.ToBytes())
	}
	f.Add(message(web1, inform, ciaddr("10.28.36.1")).ToBytes())
	f.Add(message(stray, release, serverID(serverAddr), ciaddr("10.28.72.10")).ToBytes())
	f.Add(message(stray, decline, serverID(serverAddr), requested("10.28.72.10")).ToBytes())
	f.Add(message(foreign, discover).ToBytes())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		s, _ := newServer()
		r, x := s.Handle(bytes.Clone(b), noon)
		if (r == nil) != (x.Reply == "") || x.Decision == "" {
			t.Fatalf("got reply %v, but told %q, %q", r, x.Reply, x.Decision)
		}
		if r == nil {
			return
		}
		if r.OpCode != dhcpv4.OpcodeBootReply || !bytes.Equal(r.TransactionID[:], b[4:8]) || !bytes.Equal(r.ClientHWAddr, b[28:34]) {
			t.Errorf("%s does not answer the request", r)
		}
		if got, _ := netip.AddrFromSlice(r.YourIPAddr.To4()); !got.IsUnspecified() {
			want := netip.MustParseAddr("10.28.36.1")
			if x.Plan.CatchAll {
				want = netip.MustParseAddr("10.28.72.10")
			}
			if got != want {
				t.Errorf("got address %s, want %s", got, want)
			}
		}
		out := r.ToBytes()
		if len(out) > 1472 {
			t.Errorf("reply has %d bytes", len(out))
		}
		again, err := dhcpv4.FromBytes(out)
		if err != nil {
			t.Fatalf("reply does not parse: %v", err)
		}
		to, hw := dhcp.DestinationOf(again)
		if !to.Addr().Is4() || (hw == nil && to.Addr() == netip.IPv4Unspecified()) {
			t.Errorf("reply goes to %s", to)
		}
	})
}
