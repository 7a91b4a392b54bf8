package pools

import "net/netip"

// SubnetOf returns the index of the subnet that holds a, or -1.
func (c *Config) SubnetOf(a netip.Addr) int {
	for i, s := range c.Subnets {
		if s.CIDR.IsValid() && s.CIDR.Contains(a) {
			return i
		}
	}
	return -1
}

// HasIPv6 reports whether a subnet of the config is of IPv6. Without one, drover opens no
// socket of DHCPv6.
func (c *Config) HasIPv6() bool {
	for i := range c.Subnets {
		if c.Subnets[i].Is6() {
			return true
		}
	}
	return false
}

// Is6 reports whether the subnet is of IPv6.
func (s *Subnet) Is6() bool { return s.CIDR.Addr().Is6() }
