package server

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"time"

	"drover/dhcp/dhcp6"
	"drover/dhcp/dhcp6d"
	"drover/pools"
	"drover/server/network"
	"drover/state"
)

// serveDHCP6 makes a DHCPv6 server for each interface if the config has a subnet of IPv6.
func (s *Server) serveDHCP6(cfg pools.Config) {
	if !cfg.HasIPv6() || cfg.Server.DHCP == pools.DHCPOff {
		return
	}
	duid := serverDUID(cfg.Server.Interfaces)
	for i, name := range cfg.Server.Interfaces {
		if slices.Contains(cfg.Server.Interfaces[:i], name) {
			continue
		}
		s.DHCP6 = append(s.DHCP6, &dhcp6d.Server{
			Responder: dhcp6.Responder{Farm: s.Machines, Leases: s.Store.Leases6, DUID: duid, Mode: cfg.Server.DHCP},
			Interface: name, Machines: s.Machines, Networks: s.Machines, Log: s.part("dhcpv6"), OnExchange: s.exchange,
		})
	}
}

// byIPv6 is the end of the name of a part that serves an interface by DHCPv6.
const byIPv6 = " by IPv6"

// dhcpParts returns the names of the parts that serve DHCP or DHCPv6.
func (s *Server) dhcpParts() (names []string) {
	for _, d := range s.DHCP {
		names = append(names, d.Interface)
	}
	for _, d := range s.DHCP6 {
		names = append(names, d.Interface+byIPv6)
	}
	return names
}

// serverDUID returns the DUID of this server: it is made from the MAC of the first
// interface that has one, and is the same on all interfaces (RFC 8415, section 11).
func serverDUID(interfaces []string) []byte {
	for _, name := range interfaces {
		if ifi, err := net.InterfaceByName(name); err == nil && len(ifi.HardwareAddr) == 6 {
			return dhcp6.NewDUID(pools.MAC(ifi.HardwareAddr))
		}
	}
	return dhcp6.NewDUID(pools.MAC{2, 'd', 'r', 'o', 'v', 'e'})
}

// serveTFTP6 makes the TFTP server of IPv6, beside that of IPv4, if the config has a
// subnet of IPv6. A TFTP server has one family.
func (s *Server) serveTFTP6(cfg pools.Config, loaders string) {
	host, port, err := net.SplitHostPort(cfg.Server.TFTP)
	if !cfg.HasIPv6() || err != nil || host != "" {
		return
	}
	s.tftp6 = s.newTFTP(cfg.Server, net.JoinHostPort("::", port), loaders)
}

// listen6 binds the sockets of IPv6, and adds the functions that serve them.
func (s *Server) listen6(serve map[string]func(context.Context) error) error {
	for _, d := range s.DHCP6 {
		if err := s.listenOn(d.Interface+byIPv6, "dhcpv6 on "+d.Interface, d, dhcp6d.ErrNotReady, serve); err != nil {
			return err
		}
	}
	if s.tftp6 == nil {
		return nil
	}
	if err := s.tftp6.Listen(); err != nil {
		return network.InUse(err)
	}
	serve["tftp6"] = s.tftp6.Serve
	return nil
}

// leaseAt returns the lease of an address of either family.
func leaseAt(store *state.Store) func(netip.Addr) (pools.Lease, bool) {
	return func(a netip.Addr) (pools.Lease, bool) { return leasesOf(store, a).At(a) }
}

// leasesOf returns the lease table of the family of an address.
func leasesOf(store *state.Store, a netip.Addr) *state.Leases {
	if a.Is6() {
		return store.Leases6
	}
	return store.Leases
}

// leases are the lease tables of both families.
type leases struct{ store *state.Store }

// List returns all leases.
func (l leases) List() []pools.Lease { return append(l.store.Leases.List(), l.store.Leases6.List()...) }

// End ends the lease or the quarantine that a machine has of an address.
func (l leases) End(a netip.Addr, mac pools.MAC, now time.Time) bool {
	return leasesOf(l.store, a).End(a, mac, now)
}

// Offered returns the pool of the address that was offered to a machine; "" for none.
func (l leases) Offered(mac pools.MAC, now time.Time) string {
	if pool := l.store.Leases.Offered(mac, now); pool != "" {
		return pool
	}
	return l.store.Leases6.Offered(mac, now)
}
