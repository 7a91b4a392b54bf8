package dhcp_test

import (
	"bytes"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/iana"

	"drover/dhcp"
	"drover/pools"
	"drover/pools/resolve"
)

// seeds returns packets that reach most of the code.
func seeds() (packets [][]byte) {
	for _, d := range firstDiscovers() {
		packets = append(packets, d.ToBytes())
		d.Options[53] = []byte{byte(request)}
		d.Options[50] = []byte{10, 28, 36, 1}
		packets = append(packets, d.ToBytes())
		d.ClientIPAddr = []byte{10, 28, 36, 2}
		packets = append(packets, d.ToBytes())
	}
	override := option(82, 1, 1, 'x', 5, 4, 10, 28, 5, 0, 11, 4, 10, 28, 0, 254)
	for _, d := range []*dhcpv4.DHCPv4{
		message(web1, inform, ciaddr("10.28.36.1")),
		message(web1, request, ciaddr("10.28.36.9")),
		message(web1, discover, text(81, "\x05\x00\x00\x04web1\x00"), option(57, 2, 64)),
		message(web1, discover, giaddr("10.28.0.254"), override, option(118, 10, 28, 0, 0)),
		message(stray, release, serverID(serverAddr), ciaddr("10.28.72.10")),
		message(stray, decline, serverID(serverAddr), requested("10.28.72.10")),
		message(web1, inform), message(web1, discover, infiniBand(web1)), message(stray, request, infiniBand(stray), requested("10.28.72.10")),
		message(web1, discover, giaddr("10.28.0.254"), option(82, 19, 0, 1, 200)), message(web1, discover, option(118, 1)),
		message(web1, request, rom, ciaddr("10.28.5.5"), option(43, 71, 4, 0, 0, 0, 0, 255)),
		message(web1, discover, option(52, 3)), message(web1, discover, arch(6), text(60, "PXEClient:Arch:00006")),
		message(foreign, discover),
	} {
		packets = append(packets, d.ToBytes())
	}
	packets = append(packets, overloaded(message(web1, discover), "\x3c\x09PXEClient\xff", "\x5d\x02\x00\x07\xff"))
	return append(packets, bootp(web1), withoutCookie(bootp(web1)), bootp(stray, giaddr("10.28.0.254"), option(82, 1, 1, 'x')), nil)
}

// FuzzReply sends arbitrary bytes to the server, in each mode and to each port.
// An answer must belong to this request, fit into a frame, and be readable. It
// may give only addresses that belong to the client.
func FuzzReply(f *testing.F) {
	for _, b := range seeds() {
		f.Add(b)
	}
	long := resolve.Option{Code: 121, Data: bytes.Repeat([]byte{7}, 300)}
	more := resolve.Option{Code: 119, Data: bytes.Repeat([]byte{7}, 120)}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, _ := newServer()
		s.Farm = farm{Options: []resolve.Option{more, long}}
		r, x := s.handle(bytes.Clone(b), noon)
		checkReply(t, b, r, s.last, &x)
		if r != nil {
			checkAddress(t, r, &x)
		}
		s.Mode = pools.DHCPProxy
		r, x = s.handle(bytes.Clone(b), noon)
		checkReply(t, b, r, s.last, &x)
		if r != nil && !r.YourIPAddr.IsUnspecified() {
			t.Errorf("in proxy mode: got address %s", r.YourIPAddr)
		}
		req, err := dhcpv4.FromBytes(append(bytes.Clone(b), 255))
		if err != nil {
			return
		}
		r, x = s.ReplyBoot(req, noon)
		checkReply(t, b, r, s.last, &x)
		if r != nil && !r.YourIPAddr.IsUnspecified() {
			t.Errorf("on port 4011: got address %s", r.YourIPAddr)
		}
	})
}

func checkReply(t *testing.T, b []byte, r *dhcpv4.DHCPv4, last *dhcp.Message, x *dhcp.Exchange) {
	t.Helper()
	if (r == nil) != (x.Reply == "") || x.Decision == "" {
		t.Fatalf("got reply %v, but told %q, %q", r, x.Reply, x.Decision)
	}
	if r == nil {
		return
	}
	if r.OpCode != dhcpv4.OpcodeBootReply || !bytes.Equal(r.TransactionID[:], b[4:8]) || !bytes.Equal(r.ClientHWAddr, b[28:28+int(b[2])]) || r.HWType != iana.HWType(b[1]) {
		t.Errorf("%s does not answer the request", r)
	}
	out := r.ToBytes()
	pad := len(last.Append(nil)) - len(out) // behind option 67
	if wire := last.ByCode(); !bytes.Equal(wire, out) || pad < 0 || pad > 1 || pad == 1 && !r.Options.Has(dhcpv4.OptionBootfileName) {
		t.Errorf("sent  %x\nwanted %x", wire, out)
	}
	if len(out) > 1472 {
		t.Errorf("reply has %d bytes", len(out))
	}
	o := unfold(t, out)
	if x.Type == "BOOTREQUEST" {
		if len(o[51])+len(o[52])+len(o[53])+len(o[54]) > 0 || x.Reply != "BOOTREPLY" {
			t.Errorf("got options %v in an answer by BOOTP", o)
		}
	} else if len(o[53]) != 1 || len(o[54]) != 4 {
		t.Errorf("got options %v", o)
	}
	if b[1] == 32 && !r.IsBroadcast() {
		t.Error("InfiniBand has no address for a unicast")
	}
	if _, err := dhcpv4.FromBytes(out); err != nil {
		t.Fatalf("reply does not parse: %v", err)
	}
	to, hw := last.Destination()
	if !to.Addr().Is4() || (hw == nil && to.Addr() == netip.IPv4Unspecified()) {
		t.Errorf("reply goes to %s", to)
	}
}

// checkAddress fails unless the reply gives the machine's own address, or the
// address that it runs on.
func checkAddress(t *testing.T, r *dhcpv4.DHCPv4, x *dhcp.Exchange) {
	t.Helper()
	got, _ := netip.AddrFromSlice(r.YourIPAddr.To4())
	own := netip.MustParseAddr("10.28.36.1")
	if x.Plan.CatchAll {
		own = netip.MustParseAddr("10.28.72.10")
	}
	adopted := !x.Plan.CatchAll && r.ClientIPAddr.Equal(r.YourIPAddr) && x.Plan.Subnet.CIDR.Contains(got)
	if !got.IsUnspecified() && got != own && !adopted {
		t.Errorf("got address %s, want %s", got, own)
	}
}

// FuzzRelayOption reads arbitrary values of option 82.
func FuzzRelayOption(f *testing.F) {
	f.Add([]byte{1, 4, 'g', 'e', '-', '7', 2, 2, 's', 'w', 6, 1, 'c'})
	f.Add([]byte{5, 4, 10, 1, 0, 0, 11, 4, 10, 0, 0, 1})
	f.Add([]byte{1, 1, 'x', 1, 0, 255})
	f.Add([]byte{19, 0, 1, 1, 'x', 5, 3, 1, 2, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		ids, link, server, warning := dhcp.RelayInfo(b)
		for _, id := range ids {
			if !bytes.Contains(b, []byte(id)) {
				t.Errorf("%q is not in the option", id)
			}
		}
		for _, a := range []netip.Addr{link, server} {
			if a.IsValid() && (!a.Is4() || a.IsMulticast() || a.IsUnspecified()) {
				t.Errorf("got address %s", a)
			}
		}
		if warning == "" && len(b) == 1 {
			t.Error("half a sub-option is none")
		}
		if strings.Contains(warning, "cut off") && ids != [3]string{} {
			t.Errorf("got %q of half an option", ids)
		}
	})
}

// FuzzClientTexts sends arbitrary texts in the options that describe the
// client. The texts that reach the log and the page must be short and
// printable.
func FuzzClientTexts(f *testing.F) {
	f.Add("PXEClient:Arch:00007:UNDI:003000", "iPXE", []byte{0, 7}, "\x01\x04ge-7", []byte{1, 3, 6}, "\x04\x00\x00\x02me\x00")
	f.Add("U-Boot.armv8", "\x03abc\x04iPXE", []byte{1, 0, 0}, "\x02\x01\n", []byte{}, "")
	f.Fuzz(func(t *testing.T, class, user string, archs []byte, relay string, list []byte, name string) {
		s, _ := newServer()
		in := message(web1, discover, text(60, class), text(77, user), option(93, archs...), text(82, relay), option(55, list...), text(81, name))
		r, x := s.Reply(in, noon)
		for _, told := range []string{x.Class, x.Circuit, x.Remote} {
			if len(told) > 2+64*4 || strings.ContainsFunc(told, func(c rune) bool { return c < ' ' || c > '~' }) {
				t.Errorf("told %q", told)
			}
		}
		if x.Decision == dhcp.Malformed {
			return
		}
		if want := "10.28.36.1"; r == nil || r.YourIPAddr.String() != want {
			t.Fatalf("got reply %v, %q, want address %s", r, x.Decision, want)
		}
		if len(r.ToBytes()) > 548 {
			t.Errorf("reply has %d bytes", len(r.ToBytes()))
		}
	})
}

// FuzzFit makes replies of any length fit. Each option must be complete in the
// reply, or be returned as omitted.
func FuzzFit(f *testing.F) {
	f.Add([]byte{100, 250, 101, 120, 102, 60, 3, 200}, uint16(548), "")
	f.Add([]byte{43, 255, 121, 255, 15, 13}, uint16(900), "undionly.kpxe")
	f.Fuzz(func(t *testing.T, sizes []byte, limit uint16, file string) {
		limit = min(max(limit, 548), 1472)
		file = strings.ReplaceAll(file[:min(len(file), 127)], "\x00", "")
		r := &dhcpv4.DHCPv4{Options: dhcpv4.Options{53: {2}, 54: {10, 28, 0, 2}}, BootFileName: file}
		want := map[uint8][]byte{}
		for ; len(sizes) >= 2; sizes = sizes[2:] {
			code := sizes[0]
			echoed := code == 97 || code == 118 // never omitted
			if code == 3 || code == 43 || code > 90 && code < 255 && !echoed {
				want[code] = bytes.Repeat([]byte{code}, 1+3*int(sizes[1]))
				r.Options[code] = want[code]
			}
		}
		out, left := dhcp.Fit(r, int(limit))
		if len(out) > int(limit) {
			t.Errorf("got %d bytes, want at most %d", len(out), limit)
		}
		got := unfold(t, out)
		for code, data := range want {
			if slices.Contains(left, code) {
				data = nil
			}
			if !bytes.Equal(got[code], data) {
				t.Errorf("option %d: got %d bytes, want %d", code, len(got[code]), len(data))
			}
		}
		if got := string(bytes.TrimRight(out[108:236], "\x00")); file != "" && got != file {
			t.Errorf("the boot file has become %q", got)
		}
	})
}

// FuzzOrder orders options by any list. Each option is sent once, what the client lists
// comes in its order before the rest, and the mask before the router.
func FuzzOrder(f *testing.F) {
	f.Add([]byte{53, 1, 3, 6, 82, 42}, []byte{42, 3, 6, 1, 82, 53})
	f.Add([]byte{1, 3, 255, 0}, []byte{3, 3, 1, 0})
	f.Fuzz(func(t *testing.T, codes, list []byte) {
		if len(codes) > 255 {
			return
		}
		order := dhcp.Order(codes, list)
		at := func(code uint8) int { return slices.Index(order, code) }
		for code := range 256 {
			if n := len(order) - len(slices.DeleteFunc(slices.Clone(order), func(c uint8) bool { return c == uint8(code) })); n != min(1, bytes.Count(codes, []byte{byte(code)})) {
				t.Errorf("option %d is there %d times in %d of %d", code, n, order, codes)
			}
		}
		if at(3) >= 0 && at(1) > at(3) && (slices.Contains(list, 3) || !slices.Contains(list, 1)) {
			t.Errorf("the router is before the mask in %d, list %d", order, list)
		}
		if n := at(53); n > 0 {
			t.Errorf("the message type is not the first in %d", order)
		}
		if n := at(82); n >= 0 && n != len(order)-1 {
			t.Errorf("option 82 is not the last in %d", order)
		}
		last := -1
		for i, code := range list {
			if slices.Contains(list[:i], code) || at(code) < 0 || code == 1 || code == 53 || code == 82 {
				continue
			}
			if at(code) < last {
				t.Errorf("got %d for the list %d", order, list)
			}
			last = at(code)
		}
	})
}
