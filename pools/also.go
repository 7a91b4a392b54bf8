package pools

import (
	"net/netip"
	"strings"
)

// Others returns the listeners of Also; invalid ones are left out.
func (s *Server) Others() (all []netip.AddrPort) {
	for _, text := range s.Also {
		if a, err := ParseServerURL(text); err == nil {
			all = append(all, a)
		}
	}
	return all
}

// ParseServerURL reads the URL of a node-facing listener: http://ADDRESS or http://ADDRESS:PORT.
func ParseServerURL(text string) (a netip.AddrPort, err error) {
	host, ok := strings.CutPrefix(text, "http://")
	if !ok {
		return a, Hint("http://192.0.2.3, or http://192.0.2.3:8080", "%q is not the URL of another server", text)
	}
	return ParseServer(host)
}

// ParseServer reads the listener of another server: ADDRESS or ADDRESS:PORT.
func ParseServer(text string) (a netip.AddrPort, err error) {
	if a, err = netip.ParseAddrPort(text); err != nil {
		var addr netip.Addr
		addr, err = netip.ParseAddr(strings.Trim(text, "[]"))
		a = netip.AddrPortFrom(addr, 80)
	}
	if addr := a.Addr(); err != nil || addr.Zone() != "" || addr.Is4In6() || addr.IsUnspecified() || addr.IsMulticast() || a.Port() == 0 {
		return netip.AddrPort{}, Hint("192.0.2.3, or 192.0.2.3:8080", "%q is not the address of another server", text)
	}
	return a, nil
}

// ServerText is the inverse of [ParseServer], without the usual port.
func ServerText(a netip.AddrPort) string {
	if text := a.String(); a.Port() != 80 {
		return text
	}
	if a.Addr().Is6() {
		return "[" + a.Addr().String() + "]"
	}
	return a.Addr().String()
}
