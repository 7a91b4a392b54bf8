package dhcpd_test

import (
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/net/bpf"

	"drover/dhcp/dhcpd"
	"drover/pools"
)

// TestFrameFilter: the socket for frames receives what proves no sender. The filter of
// UDP sockets is the same program, with other results.
func TestFrameFilter(t *testing.T) {
	server := netip.MustParseAddrPort("10.28.0.2:67")
	many := make([]pools.MAC, 200)
	for i := range many {
		many[i] = pools.MAC{2, 0, 0, 0, 1, byte(i)}
	}
	vm, err := bpf.NewVM(dhcpd.FrameFilter(append([]pools.MAC{foreign}, many...)))
	if err != nil {
		t.Fatal(err)
	}
	near := web1
	near[5]++
	for _, tt := range []struct {
		name    string
		from    pools.MAC
		to      netip.AddrPort
		message []byte
		change  func([]byte)
		want    bool
	}{
		{"a machine", web1, server, message(web1, discover).ToBytes(), nil, false},
		{"in the name of another", web1, server, message(stray, discover).ToBytes(), nil, true},
		{"whose MAC differs at its end", near, server, message(web1, discover).ToBytes(), nil, true},
		{"whose MAC differs at its beginning", pools.MAC{0x50, 0x54, 0, 0, 0, 1}, server, message(web1, discover).ToBytes(), nil, true},
		{"a relay agent", foreign, server, message(web1, discover, giaddr("10.28.0.254")).ToBytes(), nil, false},
		{"another", stray, server, message(web1, discover, giaddr("10.28.0.254")).ToBytes(), nil, true},
		{"the client plays the relay agent", web1, server, message(web1, discover, giaddr("10.28.0.254")).ToBytes(), nil, true},
		{"the relay agent as a router", foreign, server, message(web1, discover).ToBytes(), nil, true},
		{"a relay agent of many", many[100], server, message(web1, discover, giaddr("10.28.0.254")).ToBytes(), nil, false},
		{"one beyond the limit of the filter", many[199], server, message(web1, discover, giaddr("10.28.0.254")).ToBytes(), nil, true},
		{"to the boot port", web1, netip.MustParseAddrPort("10.28.0.2:4011"), message(stray, discover).ToBytes(), nil, true},
		{"to another port", web1, netip.MustParseAddrPort("10.28.0.2:69"), message(stray, discover).ToBytes(), nil, false},
		{"too short for DHCP", web1, server, message(stray, discover).ToBytes()[:239], nil, false},
		{"too long", web1, server, make([]byte, 2048), nil, false},
		{"a fragment", web1, server, message(stray, discover).ToBytes(), func(f []byte) { f[21] = 1 }, false},
		{"more fragments follow", web1, server, message(stray, discover).ToBytes(), func(f []byte) { f[20] = 0x20 }, false},
		{"TCP", web1, server, message(stray, discover).ToBytes(), func(f []byte) { f[23] = 6 }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := dhcpd.Frame(tt.from[:], stray[:], netip.MustParseAddrPort("0.0.0.0:68"), tt.to, tt.message)
			if tt.change != nil {
				tt.change(f)
			}
			n, err := vm.Run(f)
			if err != nil || (n > 0) != tt.want {
				t.Errorf("got %d bytes, %v, want any: %t", n, err, tt.want)
			}
		})
	}
}

// TestFiltersAreAccepted: the programs are valid with any number of relay agents.
func TestFiltersAreAccepted(t *testing.T) {
	for _, n := range []int{0, 1, 128, 1000} {
		for _, program := range [][]bpf.Instruction{dhcpd.FrameFilter(make([]pools.MAC, n)), dhcpd.SocketFilter(make([]pools.MAC, n))} {
			if raw, err := bpf.Assemble(program); err != nil || len(raw) > 1000 {
				t.Errorf("%d relay agents: got %d instructions, %v", n, len(raw), err)
			}
		}
	}
}

// TestParseFrame reads back what Frame writes, and refuses the rest.
func TestParseFrame(t *testing.T) {
	src, dst := netip.MustParseAddrPort("10.28.36.1:68"), netip.MustParseAddrPort("10.28.0.2:67")
	whole := dhcpd.Frame(web1[:], stray[:], src, dst, []byte("hello"))
	padded := append(slices.Clip(whole), make([]byte, 20)...)
	for _, f := range [][]byte{whole, padded} {
		m, from, s, d, ok := dhcpd.ParseFrame(f)
		if !ok || string(m) != "hello" || from != web1 || s != src || d != dst {
			t.Errorf("got %q from %s at %s to %s, %t", m, s, from, d, ok)
		}
	}
	for i := range whole {
		if _, _, _, _, ok := dhcpd.ParseFrame(whole[:i]); ok {
			t.Errorf("the first %d bytes are accepted", i)
		}
	}
	for name, at := range map[string]int{"version": 14, "fragment": 20, "protocol": 23, "length": 38, "type": 12} {
		f := append([]byte(nil), whole...)
		f[at] ^= 0x3f
		if _, _, _, _, ok := dhcpd.ParseFrame(f); ok {
			t.Errorf("accepted with another %s", name)
		}
	}
}
