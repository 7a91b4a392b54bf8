package kube_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"drover/kube"
	"drover/pools"
	"drover/pools/resolve"
)

// TestJoinFamilies: a Node registers with addresses of the families of its cluster, the
// primary one first, whatever family its machine asks over.
func TestJoinFamilies(t *testing.T) {
	four, six := addr(), addr6()
	declared := func(p *resolve.Plan) { p.Address, p.Address6 = four, six }
	stranger := func(*resolve.Plan) {}
	for _, tt := range []struct {
		name     string
		families pools.IPFamilies
		asked    netip.Addr
		edit     func(*resolve.Plan)
		leased   []netip.Addr
		want     string // --node-ip, or a part of the error
	}{
		{"not configured", "", four, declared, nil, "10.28.36.173"},
		{"not configured, over IPv6", "", six, declared, nil, "2001:db8::29"},
		{"IPv4", pools.IPv4Only, four, declared, nil, "10.28.36.173"},
		{"IPv6", pools.IPv6Only, six, declared, nil, "2001:db8::29"},
		{"IPv6, asked over IPv4", pools.IPv6Only, four, declared, nil, "2001:db8::29"},
		{"dual-stack", pools.DualIPv4, four, declared, nil, "10.28.36.173,2001:db8::29"},
		{"dual-stack, asked over IPv6", pools.DualIPv4, six, declared, nil, "10.28.36.173,2001:db8::29"},
		{"dual-stack, IPv6 first", pools.DualIPv6, four, declared, nil, "2001:db8::29,10.28.36.173"},
		{"dual-stack, by leases", pools.DualIPv4, six, stranger, []netip.Addr{four, six}, "10.28.36.173,2001:db8::29"},
		{"asked from another address than the leased one", pools.DualIPv4, four, stranger, []netip.Addr{netip.MustParseAddr("10.28.0.9"), six}, "10.28.36.173,2001:db8::29"},
		{"the address of the request in the form of IPv6", pools.DualIPv4, netip.AddrFrom16(four.As16()), declared, nil, "10.28.36.173,2001:db8::29"},
		{"no IPv6 address", pools.DualIPv4, four, stranger, []netip.Addr{four}, "knows no ipv6 address"},
		{"no IPv4 address", pools.IPv4Only, six, stranger, nil, "knows no ipv4 address"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newAPIServer(t)
			c, _, _ := withLoops(t, s, pools.Cluster{IPFamilies: tt.families}, func(c *kube.Clusters) {
				c.Addresses = func(pools.MAC) []netip.Addr { return tt.leased }
			})
			got, err := c.Join(t.Context(), plan(tt.edit), tt.asked, "")
			var again interface{ RetryAfter() time.Duration }
			switch {
			case err == nil:
				if ip := decode(t, got.Kubeadm).arg("node-ip"); ip != tt.want {
					t.Errorf("got --node-ip=%s, want %s", ip, tt.want)
				}
			case !strings.Contains(err.Error(), tt.want) || !errors.As(err, &again):
				t.Errorf("got error %v, want one with %q after which the node asks again", err, tt.want)
			}
		})
	}
}
