package ra_test

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"
	"time"

	"golang.org/x/net/ipv6"

	"drover/dhcp/ra"
	"drover/pools"
)

// start is when the wires of the tests begin to serve.
var start = time.Unix(1000, 0)

// listened is when they have found no other router.
var listened = start.Add(10 * time.Second)

// newWire returns one that has looked for routers.
func newWire(content ra.Advertisement) ra.Wire {
	w := ra.NewWire(server.mac, server.addr, content, start)
	for now := start; now.Before(listened); now = now.Add(time.Second) {
		w.Tick(now)
	}
	return w
}

// The answer configures nothing: all fields but the type and the checksum are zero.
func TestAnswer(t *testing.T) {
	for name, x := range map[string]struct{ got, want []byte }{
		"iPXE, its link-local address": {solicit(t, ipxe), answer(t, ipxe, make([]byte, 12)...)},
		"a global address":             {solicit(t, ipxe.at("2001:db8::7")), answer(t, ipxe.at("2001:db8::7"), make([]byte, 12)...)},
		"without the option":           {packet(t, ipxe, everyRouter, ipv6.ICMPTypeRouterSolicitation, make([]byte, 4)), answer(t, ipxe, make([]byte, 12)...)},
		"to the server alone":          {packet(t, ipxe, server, ipv6.ICMPTypeRouterSolicitation, make([]byte, 4)), answer(t, ipxe, make([]byte, 12)...)},
		"an unknown option": {packet(t, ipxe, everyRouter, ipv6.ICMPTypeRouterSolicitation, make([]byte, 4), []byte{14, 1, 1, 2, 3, 4, 5, 6}),
			answer(t, ipxe, make([]byte, 12)...)},
		"a padded frame":         {append(solicit(t, ipxe), make([]byte, 20)...), answer(t, ipxe, make([]byte, 12)...)},
		"no address: to all":     {packet(t, ipxe.at("::"), everyRouter, ipv6.ICMPTypeRouterSolicitation, make([]byte, 4)), answer(t, everyNode, make([]byte, 12)...)},
		"the reserved field set": {packet(t, ipxe, everyRouter, ipv6.ICMPTypeRouterSolicitation, []byte{1, 2, 3, 4}), answer(t, ipxe, make([]byte, 12)...)},
	} {
		t.Run(name, func(t *testing.T) {
			reply, p := newWire(empty).Receive(x.got, listened)
			if p != (ra.Packet{Type: "solicitation", Result: ra.Answered}) || !bytes.Equal(reply, x.want) {
				t.Errorf("got %v and\n%x, want\n%x", p, reply, x.want)
			}
		})
	}
}

// change returns a copy of a frame with other bytes at an offset.
func change(f []byte, at int, b ...byte) []byte {
	f = slices.Clone(f)
	copy(f[at:], b)
	return f
}

// Solicitations that RFC 4861, section 6.1.1, calls invalid get no answer.
func TestInvalid(t *testing.T) {
	good := solicit(t, ipxe)
	solicitation := func(from host, body ...byte) []byte {
		return packet(t, from, everyRouter, ipv6.ICMPTypeRouterSolicitation, body)
	}
	for name, f := range map[string][]byte{
		"hop limit 254":                    change(good, 21, 254),
		"hop limit 0":                      change(good, 21, 0),
		"wrong checksum":                   change(good, 56, 1),
		"no checksum":                      change(good, 56, 0, 0),
		"code 1":                           packetCode(t, 1),
		"seven bytes":                      solicitation(ipxe, 0, 0, 0),
		"an option of length 0":            solicitation(ipxe, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0),
		"an option that is cut off":        solicitation(ipxe, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0),
		"half an option":                   solicitation(ipxe, 0, 0, 0, 0, 1),
		"from ::, with a link-layer addr.": solicitation(ipxe.at("::"), slices.Concat(make([]byte, 4), sourceAddress(ipxe.mac))...),
		"from a multicast address":         solicitation(ipxe.at("ff02::1"), 0, 0, 0, 0),
		"from ::1":                         solicitation(ipxe.at("::1"), 0, 0, 0, 0),
		"from a multicast MAC":             solicitation(host{pools.MAC{3, 0, 0, 0, 0, 1}, ipxe.addr}, 0, 0, 0, 0),
	} {
		t.Run(name, func(t *testing.T) {
			if reply, p := newWire(empty).Receive(f, listened); reply != nil || p != (ra.Packet{Type: "solicitation", Result: ra.Invalid}) {
				t.Errorf("got %v and %x", p, reply)
			}
		})
	}
	for name, f := range map[string][]byte{
		"no frame":               nil,
		"cut off":                good[:53],
		"cut off in the message": good[:60],
		"IPv4":                   change(good, 12, 8, 0),
		"version 4":              change(good, 14, 0x40),
		"TCP":                    change(good, 20, 6),
		"neighbour solicitation": packet(t, ipxe, everyRouter, ipv6.ICMPTypeNeighborSolicitation, make([]byte, 20)),
		"to another host":        packet(t, ipxe, router, ipv6.ICMPTypeRouterSolicitation, make([]byte, 4)),
		"from ourselves":         solicit(t, server),
		"no message":             change(good, 18, 0, 0),
	} {
		t.Run(name, func(t *testing.T) {
			if reply, p := newWire(empty).Receive(f, listened); reply != nil || p != (ra.Packet{}) {
				t.Errorf("got %v and %x", p, reply)
			}
		})
	}
}

// packetCode is a solicitation with a code and a good checksum.
func packetCode(t *testing.T, code byte) []byte {
	t.Helper()
	f := solicit(t, ipxe)
	f[55] += code
	sum := uint32(binary.BigEndian.Uint16(f[56:])) - uint32(code)
	binary.BigEndian.PutUint16(f[56:], uint16(sum))
	return f
}

// All hosts are sent at most one advertisement in three seconds (RFC 4861, section
// 6.2.6), and none is forgotten.
func TestMulticast(t *testing.T) {
	w := newWire(empty)
	nameless := packet(t, ipxe.at("::"), everyRouter, ipv6.ICMPTypeRouterSolicitation, make([]byte, 4))
	want := answer(t, everyNode, make([]byte, 12)...)
	if reply, _ := w.Receive(nameless, listened); !bytes.Equal(reply, want) {
		t.Fatalf("got %x, want %x", reply, want)
	}
	for range 3 {
		if reply, p := w.Receive(nameless, listened.Add(time.Second)); reply != nil || p.Result != ra.Answered {
			t.Errorf("got %x and %v a second later", reply, p)
		}
	}
	if got := w.Next(listened.Add(time.Hour)); !got.Equal(listened.Add(3 * time.Second)) {
		t.Errorf("the next one is due at %s", got)
	}
	if got := w.Tick(listened.Add(2999 * time.Millisecond)); len(got) != 0 {
		t.Errorf("got %x too early", got)
	}
	if got := w.Tick(listened.Add(3 * time.Second)); len(got) != 1 || !bytes.Equal(got[0], want) {
		t.Errorf("got %x, want one answer to all", got)
	}
	if got := w.Tick(listened.Add(time.Minute)); len(got) != 0 {
		t.Errorf("got %x again", got)
	}
}

// The server looks for routers before it answers in their place.
func TestListening(t *testing.T) {
	w := ra.NewWire(server.mac, server.addr, empty, start)
	want := packet(t, server, everyRouter, ipv6.ICMPTypeRouterSolicitation, make([]byte, 4), sourceAddress(server.mac))
	sent := 0
	for ms := range 20_000 {
		for _, f := range w.Tick(start.Add(time.Duration(ms) * time.Millisecond)) {
			if sent++; !bytes.Equal(f, want) {
				t.Errorf("got %x, want %x", f, want)
			}
		}
		if ms == 900 {
			if reply, p := w.Receive(solicit(t, ipxe), start.Add(900*time.Millisecond)); reply != nil || p.Result != ra.Listening {
				t.Errorf("got %v and %x", p, reply)
			}
		}
	}
	if sent != 3 {
		t.Errorf("%d solicitations were sent, want 3", sent)
	}
}

// heard fails the test unless an advertisement has this result, and as many routers are
// known after it.
func heard(t *testing.T, w ra.Wire, f []byte, now time.Time, want ra.Result, known int) {
	t.Helper()
	reply, p := w.Receive(f, now)
	if reply != nil || p != (ra.Packet{Type: "advertisement", Result: want}) || w.Routers() != known {
		t.Errorf("got %v, %x and %d routers; want %s and %d", p, reply, w.Routers(), want, known)
	}
}

// wants fails the test unless a solicitation of iPXE has this result.
func wants(t *testing.T, w ra.Wire, now time.Time, want ra.Result) {
	t.Helper()
	if reply, p := w.Receive(solicit(t, ipxe), now); p.Result != want || (reply != nil) != (want == ra.Answered) {
		t.Errorf("got %v and %x, want %s", p, reply, want)
	}
}

// What makes a host a router, and for how long. The option is of DNS servers (RFC 8106).
func TestOtherRouter(t *testing.T) {
	dns := append([]byte{25, 3, 0, 0, 0, 0, 1, 0}, router.addr.AsSlice()...)
	for name, f := range map[string][]byte{
		"a lifetime":       advertise(t, router, 0, 1800),
		"no default route": advertise(t, router, 0x80, 0),
		"other settings":   advertise(t, router, 0x40, 0),
		"a DNS server":     advertise(t, router, 0, 0, dns...),
		"an MTU":           advertise(t, router, 0, 0, 5, 1, 0, 0, 0, 0, 5, 0),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWire(empty)
			heard(t, w, f, listened, ra.Heard, 1)
			wants(t, w, listened, ra.OtherRouter)
			asked := 0
			for s := range 179 {
				asked += len(w.Tick(listened.Add(time.Duration(s) * time.Second)))
			}
			if asked != 2 {
				t.Errorf("it was asked for another advertisement %d times, want 2", asked)
			}
			wants(t, w, listened.Add(179*time.Second), ra.OtherRouter)
			w.Tick(listened.Add(ra.RouterCounts))
			wants(t, w, listened.Add(ra.RouterCounts), ra.Answered)
		})
	}
}

// Advertisements that make nobody a router.
func TestNoRouter(t *testing.T) {
	valid := advertise(t, router, 0, 1800)
	for name, x := range map[string]struct {
		f    []byte
		want ra.Result
	}{
		"of another server of this kind": {advertise(t, router, 0, 0), ra.Idle},
		"with its address":               {advertise(t, router, 0, 0, sourceAddress(router.mac)...), ra.Idle},
		"through a router":               {change(valid, 21, 64), ra.Invalid},
		"a wrong checksum":               {change(valid, 56, 1), ra.Invalid},
		"of a global address":            {advertise(t, router.at("2001:db8::1"), 0, 1800), ra.Invalid},
		"an option of length 0":          {advertise(t, router, 0, 1800, 3, 0, 0, 0, 0, 0, 0, 0), ra.Invalid},
		"too short":                      {packet(t, router, everyNode, ipv6.ICMPTypeRouterAdvertisement, make([]byte, 11)), ra.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWire(empty)
			heard(t, w, x.f, listened, x.want, 0)
			wants(t, w, listened, ra.Answered)
		})
	}
}

// A router that says goodbye (RFC 4861, section 6.2.5) is one no longer, and the server
// asks at once whether there is another.
func TestRouterCeases(t *testing.T) {
	prefix := append([]byte{3, 4, 64, 0xc0}, make([]byte, 28)...)
	for name, last := range map[string][]byte{
		"empty":         advertise(t, router, 0, 0),
		"with a prefix": advertise(t, router, 0, 0, prefix...), // radvd's
	} {
		t.Run(name, func(t *testing.T) {
			w := newWire(empty)
			heard(t, w, advertise(t, router, 0, 1800, prefix...), listened, ra.Heard, 1)
			heard(t, w, last, listened.Add(time.Second), ra.Idle, 0)
			if got := w.Tick(listened.Add(time.Second)); len(got) != 1 {
				t.Errorf("got %x, want a solicitation", got)
			}
			wants(t, w, listened.Add(time.Second), ra.Answered)
		})
	}
}

// Forged advertisements cost bounded memory, and silence the server for three minutes
// after the last.
func TestForgedRouters(t *testing.T) {
	w := newWire(empty)
	now := listened
	for n := range 10_000 {
		forged := host{pools.MAC{2, 1, 0, 0, byte(n >> 8), byte(n)}, netip.AddrFrom16([16]byte{0: 0xfe, 1: 0x80, 14: byte(n >> 8), 15: byte(n)})}
		now = now.Add(time.Millisecond)
		w.Receive(advertise(t, forged, 0, 65535), now)
	}
	if w.Routers() > 8 {
		t.Errorf("%d routers are remembered", w.Routers())
	}
	w.Tick(now.Add(ra.RouterCounts))
	wants(t, w, now.Add(ra.RouterCounts), ra.Answered)
}

// One machine gets ten answers at once, then one in a second; forged ones get 2000
// together, and the machine is answered again a moment later.
func TestLimits(t *testing.T) {
	w := newWire(empty)
	answered := func(n int, machine func(n int) host, now time.Time) (count int) {
		for n := range n {
			if reply, _ := w.Receive(solicit(t, machine(n)), now); reply != nil {
				count++
			}
		}
		return count
	}
	one := func(int) host { return ipxe }
	if got := answered(100, one, listened); got != 10 {
		t.Errorf("one machine: got %d answers, want 10", got)
	}
	if got := answered(100, one, listened.Add(5*time.Second)); got != 5 {
		t.Errorf("one machine, five seconds later: got %d answers, want 5", got)
	}
	forged := func(n int) host {
		return host{pools.MAC{2, 1, 0, byte(n >> 16), byte(n >> 8), byte(n)}, ipxe.addr}
	}
	now := listened.Add(time.Minute)
	if got := answered(20_000, forged, now); got != 2000 {
		t.Errorf("forged machines: got %d answers, want 2000", got)
	}
	if got := answered(1, one, now.Add(30*time.Second)); got != 1 {
		t.Error("a machine gets no answer after a flood")
	}
}

// An advertisement with content is sent beside other routers, and again unsolicited.
func TestContent(t *testing.T) {
	content := ra.Advertisement{
		Managed: true, Other: true, Lifetime: 30 * time.Minute,
		Prefixes: []ra.Prefix{{Prefix: netip.MustParsePrefix("2001:db8:1::7/64"), OnLink: true, Autonomous: true, Valid: time.Hour, Preferred: time.Minute}},
	}
	body := slices.Concat([]byte{0, 0xc0, 0x07, 0x08}, make([]byte, 8), sourceAddress(server.mac),
		[]byte{3, 4, 64, 0xc0, 0, 0, 0x0e, 0x10, 0, 0, 0, 60, 0, 0, 0, 0}, netip.MustParseAddr("2001:db8:1::").AsSlice())
	w := ra.NewWire(server.mac, server.addr, content, start)
	if got := w.Tick(start); len(got) != 2 || !bytes.Equal(got[1], answer(t, everyNode, body...)) {
		t.Errorf("at the start: got %x, want a solicitation and %x", got, answer(t, everyNode, body...))
	}
	heard(t, w, advertise(t, router, 0, 1800), start, ra.Heard, 1)
	if reply, _ := w.Receive(solicit(t, ipxe), start); !bytes.Equal(reply, answer(t, ipxe, body...)) {
		t.Errorf("got %x, want %x", reply, answer(t, ipxe, body...))
	}
	if got := w.Tick(start.Add(30 * time.Second)); len(got) != 0 {
		t.Errorf("got %x half a minute later", got)
	}
	if got := w.Tick(start.Add(10 * time.Minute)); len(got) == 0 || !bytes.Equal(got[len(got)-1], answer(t, everyNode, body...)) {
		t.Errorf("got %x ten minutes later", got)
	}
}

// More prefixes than fit are left out, and times are cut to their fields.
func TestContentBounds(t *testing.T) {
	content := ra.Advertisement{Lifetime: 100 * time.Hour, Prefixes: make([]ra.Prefix, 100)}
	for i := range content.Prefixes {
		content.Prefixes[i] = ra.Prefix{Prefix: netip.MustParsePrefix("2001:db8::/64"), Valid: 1 << 62, Preferred: -time.Hour}
	}
	w := newWire(content)
	reply, _ := w.Receive(solicit(t, ipxe), listened)
	if n := len(reply) - 14; n > 1280 || n < 1200 {
		t.Fatalf("the packet has %d bytes", n)
	}
	if got := reply[60:62]; !bytes.Equal(got, []byte{0xff, 0xff}) {
		t.Errorf("the lifetime is %x", got)
	}
	if got := reply[82:90]; !bytes.Equal(got, []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}) {
		t.Errorf("the times of a prefix are %x", got)
	}
}

// FuzzReceive: no frame makes the server fail, grow, or send more than one packet of
// its own making.
func FuzzReceive(f *testing.F) {
	for _, seed := range [][]byte{
		nil, solicit(f, ipxe), solicit(f, ipxe.at("2001:db8::1")), packet(f, ipxe.at("::"), everyRouter, ipv6.ICMPTypeRouterSolicitation, make([]byte, 4)),
		advertise(f, router, 0, 1800), advertise(f, router, 0x80, 0, 5, 1, 0, 0, 0, 0, 5, 0),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		w := newWire(empty)
		for range 3 {
			reply, p := w.Receive(frame, listened)
			if reply != nil && (p.Result != ra.Answered || len(reply) != 14+40+16 || !bytes.Equal(reply[6:12], server.mac[:])) {
				t.Errorf("got %v and %x", p, reply)
			}
		}
		w.Tick(listened.Add(time.Hour))
		if w.Routers() > 1 {
			t.Errorf("one frame made %d routers", w.Routers())
		}
	})
}
