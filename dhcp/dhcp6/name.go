package dhcp6

import (
	"net/netip"
	"strings"

	"github.com/insomniacslk/dhcp/dhcpv6"
)

// The flags of the client FQDN option (RFC 4704, section 4.1).
const (
	fqdnServer   = 1 << iota // the client wants the server to update the DNS
	fqdnOverride             // the server does not do what the client wants
	fqdnNone                 // the server updates nothing
)

// addName tells a client that sends its name the one that the farm has for it (option 39).
// drover updates no DNS. Without a domain the name is a partial one.
func (a *answer) addName(given netip.Addr) {
	sent := a.request.options.get(dhcpv6.OptionFQDN)
	if len(sent) == 0 || a.request.Type == dhcpv6.MessageTypeInformationRequest {
		return
	}
	flags := byte(fqdnNone)
	if sent[0]&fqdnServer != 0 {
		flags |= fqdnOverride
	}
	name := labels(a.plan.Node)
	name = name[:len(name)-1]
	if domain := strings.Trim(a.plan.Domain(given), "."); domain != "" {
		name = append(name, labels(domain)...)
	}
	a.b = appendOption(a.b, dhcpv6.OptionFQDN, append([]byte{flags}, name...)...)
}
