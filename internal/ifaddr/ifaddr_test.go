package ifaddr_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"drover/internal/ifaddr"
)

func TestPrefixes(t *testing.T) {
	got := ifaddr.Prefixes([]net.Addr{
		&net.IPNet{IP: net.IPv4(10, 28, 0, 2), Mask: net.CIDRMask(16, 32)},
		&net.IPAddr{IP: net.IPv4(10, 28, 0, 3)}, // of no network
		&net.IPNet{IP: net.ParseIP("fe80::1"), Mask: net.CIDRMask(64, 128)},
	})
	if fmt.Sprint(got) != "[10.28.0.2/16 fe80::1/64]" {
		t.Errorf("got %s", got)
	}
}

// TestHost: an address that comes later is found, and unknown ones cost one list a second.
func TestHost(t *testing.T) {
	first, later, group, foreign := netip.MustParseAddr("fd00:28::2"), netip.MustParseAddr("fd00:28::99"), netip.MustParseAddr("ff02::1:2"), netip.MustParseAddr("fd00:28::7")
	var addrs []net.Addr
	var fails error
	lists := 0
	h := ifaddr.Host{List: func() ([]net.Addr, error) { lists++; return addrs, fails }}
	add := func(a netip.Addr) { addrs = append(addrs, &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(64, 128)}) }
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	check := func(a netip.Addr, want bool, wantLists int) {
		t.Helper()
		if got := h.Has(a, now); got != want || lists != wantLists {
			t.Errorf("%s: got %t after %d lists, want %t after %d", a, got, lists, want, wantLists)
		}
	}
	h.Add(group)
	add(first)
	check(group, true, 0)
	check(first, true, 1)
	add(later)
	now = now.Add(ifaddr.HostInterval)
	check(later, false, 1)
	now = now.Add(1)
	check(later, true, 2)
	check(foreign, false, 2)
	addrs, fails = nil, errors.New("netlink")
	now = now.Add(2 * ifaddr.HostInterval)
	check(foreign, false, 3)
	check(first, true, 3)
}

func TestThisHost(t *testing.T) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	if got := ifaddr.Prefixes(addrs); len(got) != len(addrs) || len(got) > 0 && !slices.ContainsFunc(got, netip.Prefix.IsValid) {
		t.Errorf("got %s of %s", got, addrs)
	}
}
