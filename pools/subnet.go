package pools

import (
	"net/netip"
	"slices"
)

// SubnetOf returns the index of the subnet that holds a, or -1.
func (c *Config) SubnetOf(a netip.Addr) int {
	for i, s := range c.Subnets {
		if s.CIDR.IsValid() && s.CIDR.Contains(a) {
			return i
		}
	}
	return -1
}

// HasIPv4 reports whether a subnet of the config is of IPv4. Without one, drover gives no
// IPv4 addresses, and needs none.
func (c *Config) HasIPv4() bool {
	if len(c.Subnets) == 0 && c.Server.Objects.Namespace != "" {
		return true // they come as objects
	}
	return slices.ContainsFunc(c.Subnets, func(s Subnet) bool { return !s.Is6() })
}

// HasIPv6 reports whether a subnet of the config is of IPv6. Without one, drover opens no
// socket of DHCPv6.
func (c *Config) HasIPv6() bool {
	return slices.ContainsFunc(c.Subnets, func(s Subnet) bool { return s.Is6() })
}

// Is6 reports whether the subnet is of IPv6.
func (s *Subnet) Is6() bool { return s.CIDR.Addr().Is6() }
