package server

import (
	"net/netip"
	"slices"
	"time"

	"drover/dhcp/ra"
	"drover/pools"
)

// serveRA makes a server of router advertisements for each interface. It works without
// DHCP too, and where it cannot, nothing else fails.
func (s *Server) serveRA(cfg pools.Server) {
	if cfg.RouterAdvertisements == pools.RAOff {
		return
	}
	for _, name := range cfg.Interfaces {
		r := &ra.Server{Interface: name, Log: s.part("ra"), OnPacket: s.metrics.RouterDiscovery}
		if cfg.RouterAdvertisements == pools.RAManaged {
			r.Content = s.managed
		}
		s.metrics.WatchRA(r)
		s.RA = append(s.RA, r)
	}
}

// onLink is how long hosts take a network to be on the link after an advertisement. The
// next one comes within minutes.
const onLink = time.Hour

// managed returns the advertisement of an interface with these addresses: hosts get theirs
// by DHCPv6, and reach the declared networks of the interface directly. It is empty where
// DHCPv6 does not answer either.
func (s *Server) managed(addresses []netip.Addr) (a ra.Advertisement) {
	for _, subnet := range s.Live.Farm().Config.Subnets {
		if subnet.Is6() && slices.ContainsFunc(addresses, subnet.CIDR.Contains) {
			a.Managed, a.Other = true, true
			a.Prefixes = append(a.Prefixes, ra.Prefix{Prefix: subnet.CIDR, OnLink: true, Valid: onLink, Preferred: onLink})
		}
	}
	return a
}
