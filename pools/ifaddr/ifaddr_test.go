package ifaddr_test

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"

	"drover/pools/ifaddr"
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

func TestHost(t *testing.T) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	if got := ifaddr.Prefixes(addrs); len(got) != len(addrs) || len(got) > 0 && !slices.ContainsFunc(got, netip.Prefix.IsValid) {
		t.Errorf("got %s of %s", got, addrs)
	}
}
