package dhcp_test

import (
	"bytes"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp"
	"drover/pools"
	"drover/pools/resolve"
)

// noType makes a message one of BOOTP.
func noType(d *dhcpv4.DHCPv4) { delete(d.Options, 53) }

// bootp returns a request of 300 bytes by BOOTP.
func bootp(m pools.MAC, mods ...dhcpv4.Modifier) []byte {
	return message(m, discover, append(mods, noType)...).ToBytes()
}

// withoutCookie makes the vendor field one of RFC 951, which has no format.
func withoutCookie(b []byte, vendor ...byte) []byte {
	clear(b[236:])
	copy(b[236:], vendor)
	return b
}

// TestBOOTP: a node gets its address, its boot server and its file by BOOTP (RFC 951 and
// RFC 1534), and nothing that only DHCP has.
func TestBOOTP(t *testing.T) {
	flag := dhcpv4.WithBroadcast(true)
	relayed := bootp(web1, giaddr("10.28.0.254"), option(82, 1, 1, 'x'))
	named := bootp(web1)
	copy(named[108:], "/some/other.file")
	for _, tt := range []struct {
		name     string
		in       []byte
		to, file string
	}{
		{"with the cookie", bootp(web1), "10.28.36.1:68 " + web1.String(), "undionly.kpxe"},
		{"with options", bootp(web1, text(12, "me"), option(55, 1, 3, 6, 12)), "10.28.36.1:68 " + web1.String(), "undionly.kpxe"},
		{"without the cookie", withoutCookie(bootp(web1)), "10.28.36.1:68 " + web1.String(), "undionly.kpxe"},
		{"with a cookie of others", withoutCookie(bootp(web1), 'C', 'M', 'U', 0, 1, 2, 3), "10.28.36.1:68 " + web1.String(), "undionly.kpxe"},
		{"to all, as asked", bootp(web1, flag), "255.255.255.255:68 ff:ff:ff:ff:ff:ff", "undionly.kpxe"},
		{"through a relay agent", relayed, "10.28.0.254:67 ", "undionly.kpxe"},
		{"that wishes for a file", named, "10.28.36.1:68 " + web1.String(), "undionly.kpxe"},
		{"of a known architecture", bootp(web1, rom), "10.28.36.1:68 " + web1.String(), "snponly.efi"},
		{"the second card", bootp(web1b), "10.28.36.1:68 " + web1b.String(), "undionly.kpxe"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, l := newServer()
			l.Hold(web1, "10.28.72.77") // of an earlier life
			r, x := s.handle(tt.in, noon)
			if r == nil || x.Type != "BOOTREQUEST" || x.Reply != "BOOTREPLY" || x.Decision != dhcp.Acknowledged || !x.Netboot || !x.Begins() {
				t.Fatalf("got %v, %s %s, %q (%v)", r, x.Type, x.Reply, x.Decision, x.Err)
			}
			if r.YourIPAddr.String() != "10.28.36.1" || r.ServerIPAddr.String() != "10.28.0.2" || r.BootFileName != tt.file || x.Warning != "" {
				t.Errorf("got %s, warning %q", r.Summary(), x.Warning)
			}
			addr, hw := s.destination()
			if got := addr + " " + hw; got != tt.to {
				t.Errorf("goes to %s, want %s", got, tt.to)
			}
			for _, code := range []uint8{1, 3, 6, 12} {
				if r.Options[code] == nil {
					t.Errorf("option %d is missing", code)
				}
			}
			for _, code := range []uint8{43, 51, 52, 53, 54, 58, 59, 60, 66, 67} {
				if r.Options[code] != nil {
					t.Errorf("option %d is there", code)
				}
			}
			if r.GatewayIPAddr.IsUnspecified() != (r.Options[82] == nil) {
				t.Error("option 82 does not come back")
			}
			if n := len(s.last.Append(nil)); n > 310 || r.Options[82] == nil && n != 300 {
				t.Errorf("got %d bytes", n)
			}
			if s.last.Wait != nil {
				t.Error("a fixed address waits for the disk")
			}
		})
	}
}

func TestBOOTPOfOthers(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   []byte
		want dhcp.Decision
	}{
		{"unknown hardware of a catch-all pool", bootp(stray), dhcp.NotOurs},
		{"unknown hardware without the cookie", withoutCookie(bootp(stray)), dhcp.NotOurs},
		{"none of ours", bootp(foreign), dhcp.NotOurs},
		{"too short for BOOTP", withoutCookie(bootp(web1))[:299], dhcp.Malformed},
		{"a reply", append([]byte{2}, bootp(web1)[1:]...), dhcp.Malformed},
		{"multicast hardware", bootp(pools.MAC{1}), dhcp.Malformed},
		{"options that are cut off", append(bytes.Clone(bootp(web1)[:240]), 61, 200, 1), dhcp.Malformed},
	} {
		s, l := newServer()
		r, x := s.handle(tt.in, noon)
		if r != nil || x.Decision != tt.want || x.Reply != "" || len(l.Offered)+len(l.Active) > 0 {
			t.Errorf("%s: got %v, %q, leases %v %v, want %q", tt.name, r, x.Decision, l.Offered, l.Active, tt.want)
		}
	}
	s, _ := newProxy()
	if r, x := s.handle(bootp(web1), noon); r != nil || x.Decision != dhcp.Observed {
		t.Errorf("in proxy mode: got %v, %q", r, x.Decision)
	}
}

// TestBOOTPByPort: HTTP finds a node that is known by its port by its lease.
func TestBOOTPByPort(t *testing.T) {
	s, l := newServer()
	s.Farm = farmFunc(func(p *resolve.Plan) { p.Matched = "circuitID" })
	r, x := s.handle(bootp(web1), noon)
	if r == nil || s.last.Wait == nil {
		t.Fatalf("got %v, %q", r, x.Decision)
	}
	wantHeld(t, l, web1, "10.28.36.1")
	l.CommitErr = errDisk
	if r, x := s.handle(bootp(web1), noon); r != nil || x.Decision != dhcp.NoAddress {
		t.Errorf("without a disk: got %v, %q", r, x.Decision)
	}
}

// TestBOOTPHasNoRoom: the vendor field has 64 bytes, and BOOTP has no option overload.
func TestBOOTPHasNoRoom(t *testing.T) {
	s, _ := newServer()
	s.Farm = farm{Options: []resolve.Option{{Code: 42, Data: bytes.Repeat([]byte{10, 28, 0, 1}, 10)}}}
	r, x := s.handle(bootp(web1), noon)
	if n := len(s.last.Append(nil)); n != 300 || r.Options[42] != nil || r.Options[52] != nil || x.Warning == "" || r.BootFileName != "undionly.kpxe" {
		t.Errorf("got %d bytes, %s, warning %q", n, r.Summary(), x.Warning)
	}
}

// TestBOOTPServerName: a request that names another server in sname gets silence (RFC 951,
// section 3).
func TestBOOTPServerName(t *testing.T) {
	for _, tt := range []struct {
		sname string
		want  dhcp.Decision
	}{
		{"", dhcp.Acknowledged},
		{"10.28.0.2", dhcp.Acknowledged},
		{"10.28.0.3", dhcp.OtherServer},
		{"bootserver", dhcp.OtherServer},
	} {
		for _, cookie := range []bool{true, false} {
			s, l := newServer()
			packet := bootp(web1)
			if !cookie {
				packet = withoutCookie(packet)
			}
			copy(packet[44:], tt.sname)
			r, x := s.handle(packet, noon)
			if x.Decision != tt.want || (r != nil) != (tt.want == dhcp.Acknowledged) {
				t.Errorf("sname %q, cookie %v: got %v, %q", tt.sname, cookie, r, x.Decision)
			}
			if len(l.Offered)+len(l.Active) > 0 {
				t.Errorf("sname %q: a lease", tt.sname)
			}
		}
	}
}
