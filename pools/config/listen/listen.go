// Package listen checks addresses that drover listens at, or that others reach: their form, and
// that no two listeners share a port.
//
// It does not know lines and files of the config, and opens no sockets.
package listen

import (
	"net"
	"net/netip"
	"strconv"
	"strings"

	"drover/pools"
	"drover/pools/option"
)

// HostPort checks host:port; the host may be empty for listeners. The error has a hint.
func HostPort(s string, listen bool) error {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		hint := "write 10.28.0.2:80 or :80"
		if strings.Count(s, ":") > 1 {
			hint = "write an IPv6 address in brackets, [fd00:28::2]:80"
		}
		return pools.Hint(hint, "%q is not host:port", s)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return pools.Hint("a port is from 1 to 65535", "%q: %q is not a port", s, port)
	}
	if ip := net.ParseIP(host); ip == nil && !option.IsDomain(host) && (!listen || host != "") {
		return pools.Hint("write 10.28.0.2:80 or :80", "%q: %q is neither an address nor a host name", s, host)
	}
	return nil
}

// IsLoopback reports whether a listen address is reachable from this host only.
func IsLoopback(s string) bool {
	host, _, _ := net.SplitHostPort(s)
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Listener is a setting with an address to listen at.
type Listener struct {
	Name    string // of the setting, such as server.http
	Address string // host:port; empty: there is no listener
}

// Shared calls fail with each two listeners of a server that would have one port, so that the
// server would not start.
func Shared(s *pools.Server, fail func(first, second Listener)) {
	for _, all := range [][]Listener{
		{{"server.http", s.HTTP}, {"server.https", s.HTTPS}, {"server.api", s.API}}, // TCP
		{{"server.tftp", s.TFTP}, {"server.netconsole", s.Netconsole}},              // UDP
	} {
		for i, second := range all {
			for _, first := range all[:i] {
				if collide(first.Address, second.Address) {
					fail(first, second)
				}
			}
		}
	}
}

// collide reports whether two listeners cannot have these addresses. That of all addresses, of
// either family, takes the port of each.
func collide(a, b string) bool {
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	if errA != nil || errB != nil {
		return false // reported
	}
	n, errA := strconv.Atoi(portA)
	m, errB := strconv.Atoi(portB)
	if errA != nil || errB != nil || n != m || n == 0 {
		return false
	}
	hostA, hostB = host(hostA), host(hostB)
	return hostA == hostB || hostA == "" || hostB == ""
}

// host returns the one form of a host; "" for all addresses.
func host(s string) string {
	s = strings.ToLower(s)
	if s == "localhost" {
		s = "127.0.0.1"
	}
	a, err := netip.ParseAddr(s)
	switch {
	case err != nil:
		return s
	case a.IsUnspecified():
		return ""
	}
	return a.Unmap().String()
}
