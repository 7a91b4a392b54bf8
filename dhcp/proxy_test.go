package dhcp_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp"
	"drover/pools"
	"drover/pools/resolve"
)

func newProxy() (*responder, *leases) {
	s, l := newServer()
	s.Mode = pools.DHCPProxy
	return s, l
}

func TestProxyStory(t *testing.T) {
	s, l := newProxy()
	offer := message(web1, request, rom, serverID(otherAddr), requested("10.28.5.5"))
	play(t, s, []step{
		{"a system looks for an address", message(web1, discover), "", "", dhcp.Observed},
		{"a boot program does", message(web1, discover, rom), "OFFER", "0.0.0.0", dhcp.Offered},
		{"a machine that is none of ours", message(foreign, discover, rom), "", "", dhcp.NotOurs},
		{"a ROM that there is no loader for", message(web1, discover, arch(6), text(60, "PXEClient:Arch:00006")), "", "", dhcp.Observed},
		{"it takes the other server's address", offer, "", "", dhcp.Observed},
	})
	wantHeld(t, l, web1, "10.28.5.5")
	play(t, s, []step{
		{"another claims that address", message(stray, request, serverID(otherAddr), requested("10.28.5.5")), "", "", dhcp.Observed},
		{"it comes back with an address", message(stray, request, requested("10.28.5.6")), "", "", dhcp.Observed},
	})
	wantHeld(t, l, web1, "10.28.5.5")
	wantHeld(t, l, stray, "10.28.5.6")
	play(t, s, []step{
		{"it renews", message(stray, request, ciaddr("10.28.5.7")), "", "", dhcp.Observed},
		{"it requests nothing", message(stray, request), "", "", dhcp.Observed},
	})
	wantHeld(t, l, stray, "10.28.5.7")
	play(t, s, []step{
		{"it informs", message(stray, inform, ciaddr("10.28.5.8")), "", "", dhcp.Observed},
	})
	wantHeld(t, l, stray, "10.28.5.8")
	play(t, s, []step{
		{"it finds an address in use", message(stray, decline, serverID(otherAddr), requested("10.28.5.8")), "", "", dhcp.Observed},
		{"web1 leaves", message(web1, release, serverID(otherAddr), ciaddr("10.28.5.5")), "", "", dhcp.Observed},
		{"a server answers", message(web1, dhcpv4.MessageTypeOffer), "", "", dhcp.Unusable},
	})
	wantHeld(t, l, stray, "")
	wantHeld(t, l, web1, "")
}

// TestProxyObserves: the server records an address that another server gave for
// a minute, and no answer waits for the record.
func TestProxyObserves(t *testing.T) {
	s, l := newProxy()
	var lease time.Duration
	s.Leases = spy{l, func(p *resolve.Plan) { lease = p.Lease.D() }}
	_, x := s.Reply(on(t, message(web1, request, serverID(otherAddr), requested("10.28.5.5"))), noon)
	if x.Address != netip.MustParseAddr("10.28.5.5") || s.last != nil || lease != time.Minute {
		t.Errorf("got address %s, a reply %t, lease %s", x.Address, s.last != nil, lease)
	}
	l.DiskErr = errDisk
	if err := s.wait(); err != nil {
		t.Errorf("the shell waits for the disk: %v", err)
	}
	l.CommitErr = errDisk
	_, x = s.Reply(on(t, message(web1, request, serverID(otherAddr), requested("10.28.5.5"))), noon)
	if x.Decision != dhcp.Observed || !strings.Contains(x.Warning, "disk is gone") || x.Err != nil {
		t.Errorf("got %q, warning %q, error %v", x.Decision, x.Warning, x.Err)
	}
	s.Leases = nil
	for _, in := range []*dhcpv4.DHCPv4{
		message(web1, request, requested("10.28.5.5")),
		message(web1, release, ciaddr("10.28.5.5")),
		message(web1, decline, requested("10.28.5.5")),
	} {
		if _, x := s.Reply(on(t, in), noon); x.Decision != dhcp.Observed {
			t.Errorf("%s without a lease store: got %q", x.Type, x.Decision)
		}
	}
}

// spy passes the committed plans to see.
type spy struct {
	*leases
	see func(*resolve.Plan)
}

func (s spy) Commit(p *resolve.Plan, a netip.Addr, now time.Time) (func() error, error) {
	s.see(p)
	return s.leases.Commit(p, a, now)
}

func TestProxyData(t *testing.T) {
	uuid := "\x00123456789abcdef0"
	ask := func(mods ...dhcpv4.Modifier) *dhcpv4.DHCPv4 {
		return message(web1, discover, append(mods, text(97, uuid))...)
	}
	pxe := map[uint8]string{60: "PXEClient", 43: "\x06\x01\x08\xff", 97: uuid, 54: "\x0a\x1c\x00\x02"}
	for _, tt := range []struct {
		name    string
		in      *dhcpv4.DHCPv4
		file    string
		options map[uint8]string
	}{
		{"UEFI", ask(rom), "snponly.efi", pxe},
		{"iPXE", ask(rom, text(77, "iPXE")), "http://10.28.0.2/boot/52-54-00-00-00-01", pxe},
		{"a ROM without a class", ask(arch(0)), "undionly.kpxe", pxe},
		{"UEFI HTTP Boot", ask(arch(16), text(60, "HTTPClient:Arch:00016")), "http://10.28.0.2/loaders/snponly.efi",
			map[uint8]string{60: "HTTPClient", 43: "", 97: uuid}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := newProxy()
			r, _ := s.Reply(on(t, tt.in), noon)
			r = on(t, r)
			if r.BootFileName != tt.file || r.ServerIPAddr.String() != "10.28.0.2" || !r.IsBroadcast() {
				t.Errorf("got %s", r.Summary())
			}
			for code, want := range tt.options {
				if got := string(r.Options[code]); got != want {
					t.Errorf("option %d: got %q, want %q", code, got, want)
				}
			}
			for _, code := range []uint8{1, 3, 6, 12, 15, 28, 51, 58, 59} {
				if v, ok := r.Options[code]; ok {
					t.Errorf("option %d is there, which is the other server's: %q", code, v)
				}
			}
		})
	}
	t.Run("vendor options of the operator", func(t *testing.T) {
		s, _ := newProxy()
		s.Farm = farm{Options: []resolve.Option{{Code: 42, Data: []byte{1}}, {Code: 43, Data: []byte{9}}}}
		r, _ := s.Reply(on(t, ask(rom)), noon)
		if string(r.Options[43]) != "\x09" || r.Options[42] != nil {
			t.Errorf("got %s", r.Summary())
		}
	})
	t.Run("through a relay", func(t *testing.T) {
		s, _ := newProxy()
		r, _ := s.Reply(on(t, ask(rom, giaddr("10.28.0.254"))), noon)
		if to, _ := s.destination(); to != "10.28.0.254:67" || r.IsBroadcast() {
			t.Errorf("goes to %s, %s", to, r.FlagsToString())
		}
	})
}

func TestReplyBoot(t *testing.T) {
	for _, tt := range []struct {
		name     string
		in       *dhcpv4.DHCPv4
		decision dhcp.Decision
	}{
		{"a request", message(web1, request, rom, ciaddr("10.28.5.5")), dhcp.Acknowledged},
		{"a request that names us", message(web1, request, rom, ciaddr("10.28.5.5"), serverID(serverAddr)), dhcp.Acknowledged},
		{"an inform", message(web1, inform, rom, ciaddr("10.28.5.5")), dhcp.Acknowledged},
		{"a system", message(web1, request, ciaddr("10.28.5.5")), dhcp.Unusable},
		{"a discover", message(web1, discover, rom), dhcp.Unusable},
		{"none of ours", message(foreign, request, rom, ciaddr("10.28.5.5")), dhcp.NotOurs},
		{"broken", message(web1, request, rom, giaddr("255.255.255.255")), dhcp.Malformed},
		{"no loader", message(web1, request, arch(6), text(60, "PXEClient:Arch:00006"), ciaddr("10.28.5.5")), dhcp.Unusable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, l := newProxy()
			r, x := s.ReplyBoot(on(t, tt.in), noon)
			if x.Decision != tt.decision || (r != nil) != (x.Reply == "ACK") || (r != nil) != (tt.decision == dhcp.Acknowledged) {
				t.Fatalf("got %q, %q (%v), want %q", x.Reply, x.Decision, x.Err, tt.decision)
			}
			if r == nil {
				return
			}
			wantHeld(t, l, web1, "10.28.5.5")
			if r.BootFileName != "snponly.efi" || r.ClientIPAddr.String() != "10.28.5.5" || !r.YourIPAddr.IsUnspecified() || r.IsBroadcast() {
				t.Errorf("got %s", r.Summary())
			}
			if string(r.Options[60]) != "PXEClient" || r.Options[51] != nil {
				t.Errorf("got %s", r.Summary())
			}
		})
	}
}

// TestBootItem: the choice from a PXE boot menu (43.71) comes back, behind the operator's
// own sub-options.
func TestBootItem(t *testing.T) {
	item := "\x47\x04\x00\x05\x00\x00"
	for _, tt := range []struct {
		name  string
		sent  string // option 43 of the request
		set   string // option 43 of the operator
		want  string
		class string
	}{
		{"no item", "", "", "\x06\x01\x08\xff", "PXEClient"},
		{"an item", item + "\xff", "", "\x06\x01\x08" + item + "\xff", "PXEClient"},
		{"an item without an end", item, "", "\x06\x01\x08" + item + "\xff", "PXEClient"},
		{"a menu of the operator", item + "\xff", "\x06\x01\x00\x08\x03\x80\x00\x00\xff", "\x06\x01\x00\x08\x03\x80\x00\x00" + item + "\xff", "PXEClient"},
		{"an item of the operator", item + "\xff", "\x47\x04\x00\x09\x00\x00", item + "\xff", "PXEClient"},
		{"an operator's text", item + "\xff", "Raspberry Pi Boot", "Raspberry Pi Boot", "PXEClient"},
		{"an item of three bytes", "\x47\x03\x00\x05\x00\xff", "", "\x06\x01\x08\xff", "PXEClient"},
		{"an item that is cut off", "\x47\x04\x00", "", "\x06\x01\x08\xff", "PXEClient"},
		{"of no PXE client", item, "", "", "HTTPClient"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mods := []dhcpv4.Modifier{arch(7), text(60, tt.class), ciaddr("10.28.5.5")}
			if tt.sent != "" {
				mods = append(mods, text(43, tt.sent))
			}
			s, _ := newProxy()
			if tt.set != "" {
				s.Farm = farm{Options: []resolve.Option{{Code: 43, Data: []byte(tt.set)}}}
			}
			for _, kind := range []dhcpv4.MessageType{request, inform} {
				r, x := s.ReplyBoot(on(t, message(web1, kind, mods...)), noon)
				if r == nil || string(r.Options[43]) != tt.want {
					t.Errorf("%s: got %q, %q, want %q", kind, r.Options[43], x.Decision, tt.want)
				}
			}
		})
	}
}

// TestBootItemOfABroadcast: a client that looks for boot servers by broadcast asks port 67.
func TestBootItemOfABroadcast(t *testing.T) {
	s, _ := newServer()
	r, x := s.Reply(on(t, message(web1, request, rom, ciaddr("10.28.36.1"), text(43, "\x47\x04\x00\x05\x00\x00\xff"))), noon)
	if want := "\x06\x01\x08\x47\x04\x00\x05\x00\x00\xff"; r == nil || string(r.Options[43]) != want {
		t.Errorf("got %v, %q", r, x.Decision)
	}
}

// TestProxyNotesTheSourceOfAnInform: an INFORM may leave ciaddr empty.
func TestProxyNotesTheSourceOfAnInform(t *testing.T) {
	s, l := newProxy()
	var req dhcp.Request
	req.Parse(message(web1, inform).ToBytes())
	req.From = netip.MustParseAddr("10.28.5.5")
	s.Responder.Reply(&req, noon)
	wantHeld(t, l, web1, "10.28.5.5")
}
