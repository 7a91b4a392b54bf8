package tftp_test

import (
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"drover/tftp"
)

// fetches fails the test unless a client gets a file at once.
func (f *forgery) fetches(client netip.AddrPort, name string) {
	f.t.Helper()
	before := len(f.packets(client.Addr()))
	f.send(client, serverAt, readRequest(name, "octet", "blksize", "1000"))
	after := f.packets(client.Addr())
	if len(after) == before {
		f.t.Errorf("%s gets no answer", client)
		return
	}
	p := f.last(client.Addr())
	if p.Data[1] != 6 {
		f.t.Errorf("%s gets %q, want the options", client, p.Data)
		return
	}
	f.send(client, p.From, ack(0))
	if p := f.last(client.Addr()); p.Data[1] != 3 {
		f.t.Errorf("%s gets %q, want data", client, p.Data)
	}
}

// TestForgedRequestsTakeNoPlace holds that a thousand requests with forged addresses do
// not keep a machine from its file (finding H7).
func TestForgedRequestsTakeNoPlace(t *testing.T) {
	for name, from := range map[string]func(i int) netip.AddrPort{
		"from unknown addresses": func(i int) netip.AddrPort {
			return netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(100 + i%64)}), uint16(3000+i))
		},
		"from many networks": func(i int) netip.AddrPort {
			return netip.AddrPortFrom(netip.AddrFrom4([4]byte{172, 16, byte(i), byte(i)}), 2070)
		},
		"from known addresses": func(i int) netip.AddrPort {
			return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 28, 1, byte(i % 64)}), uint16(3000+i))
		},
		"from the machine's address":  func(i int) netip.AddrPort { return netip.AddrPortFrom(node.Addr(), uint16(3000+i)) },
		"from the machine's own port": func(int) netip.AddrPort { return node },
		"from networks not served": func(i int) netip.AddrPort {
			return netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 51, 100, byte(i)}), 2070)
		},
		"from known and other address": func(i int) netip.AddrPort {
			return netip.AddrPortFrom(netip.AddrFrom4([4]byte{byte(10 + i%2), 28, byte(i), byte(i)}), 2070)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newForgery(t, nil)
				for i := range 2000 {
					f.send(from(i), serverAt, readRequest("loader", "octet", "timeout", "30", "x", fmt.Sprint(i)))
				}
				f.fetches(node, "loader")
				f.fetches(netip.MustParseAddrPort("10.28.200.200:2070"), "small")
				time.Sleep(time.Minute) // no place is held for longer
				if n := f.server.Running(); n > 3 {
					t.Errorf("%d transfers are under way after a minute", n)
				}
			})
		})
	}
}

// TestShareOfUnknownClients holds that unknown clients that answer, and then stop, take
// their own share only, and those of one network a part of it (finding H7).
func TestShareOfUnknownClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newForgery(t, func(s *tftp.Server) { s.MaxTransfers = 64 })
		started := func(client netip.AddrPort) bool {
			before := len(f.packets(client.Addr()))
			f.send(client, serverAt, readRequest("loader", "octet", "timeout", "30"))
			if len(f.packets(client.Addr())) == before {
				return false
			}
			f.send(client, f.last(client.Addr()).From, ack(0))
			return true
		}
		count := func(network byte) (n int) {
			for i := range 64 {
				if started(netip.AddrPortFrom(netip.AddrFrom4([4]byte{172, 16, network, byte(i)}), 2070)) {
					n++
				}
			}
			return n
		}
		if a, b, c := count(1), count(2), count(3); a != 8 || b != 8 || c != 0 {
			t.Errorf("three networks have %d, %d and %d transfers; want 8, 8 and none", a, b, c)
		}
		for i := range 64 {
			if !started(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 28, 5, byte(i)}), 2070)) {
				t.Fatalf("machine %d of 64 gets no answer", i)
			}
		}
	})
}
