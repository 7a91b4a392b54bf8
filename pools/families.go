package pools

import (
	"net/netip"
	"slices"
	"strings"
)

// IPFamilies are the families of the addresses that the Nodes of a cluster have, the
// primary one first: that of the first range of Services. Empty is the family that a node
// has booted over.
type IPFamilies string

// The families of a cluster.
const (
	IPv4Only IPFamilies = "ipv4"
	IPv6Only IPFamilies = "ipv6"
	DualIPv4 IPFamilies = "ipv4,ipv6"
	DualIPv6 IPFamilies = "ipv6,ipv4"
)

// All returns the single families, the primary one first.
func (f IPFamilies) All() (all []IPFamilies) {
	for one := range strings.SplitSeq(string(f), ",") {
		if one != "" {
			all = append(all, IPFamilies(one))
		}
	}
	return all
}

// FamiliesOf returns the families of networks, in their order.
func FamiliesOf(networks []netip.Prefix) IPFamilies {
	var all []string
	for _, n := range networks {
		if family := string(FamilyOf(n.Addr())); !slices.Contains(all, family) {
			all = append(all, family)
		}
	}
	return IPFamilies(strings.Join(all, ","))
}

// FamilyOf returns the family of an address.
func FamilyOf(a netip.Addr) IPFamilies {
	if a.Unmap().Is4() {
		return IPv4Only
	}
	return IPv6Only
}
