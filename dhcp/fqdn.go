package dhcp

import (
	"net/netip"
	"strings"

	"drover/dhcp/wire"
)

// Flags of the client FQDN option (81, RFC 4702, section 2.1).
const (
	fqdnServerUpdates = 1 << 0 // S
	fqdnOverridden    = 1 << 1 // O: S differs from the request
	fqdnEncoded       = 1 << 2 // E: the name is encoded as in DNS, not as text
	fqdnNoUpdates     = 1 << 3 // N
)

// addName adds the host name of the machine, and its FQDN when the client sent
// one. The name that the machine gives itself is ignored. given is the address
// that the machine has or will have.
func (a *answer) addName(m *Message, given netip.Addr) {
	if a.plan.Node == "" {
		return
	}
	if a.asksFor(wire.OptHostName) {
		m.options.Put(wire.OptHostName, []byte(a.plan.Node)...)
	}
	if asked := a.req.options.Get(wire.OptFQDN); len(asked) >= 3 {
		m.options.Set(wire.OptFQDN, fqdn(asked[0], a.plan.Node, a.plan.Domain(given)))
	}
}

// fqdn returns the answer to option 81, which clients get even when it is not
// in their list (section 4). The server does not update DNS. Both result codes
// are 255, as section 2.2 prescribes for today's servers. A name without a
// domain is partial, and as in DNS has no root label at its end.
func fqdn(asked uint8, node, domain string) []byte {
	flags := uint8(fqdnNoUpdates) | asked&fqdnEncoded
	if asked&fqdnServerUpdates != 0 {
		flags |= fqdnOverridden
	}
	labels := []string{node}
	if domain = strings.Trim(domain, "."); domain != "" {
		labels = append(labels, strings.Split(domain, ".")...)
	}
	b := []byte{flags, 255, 255}
	if flags&fqdnEncoded == 0 {
		return append(b, strings.Join(labels, ".")...)
	}
	for _, label := range labels {
		label = label[:min(len(label), 63)] // DNS cannot encode longer labels
		if label != "" {
			b = append(append(b, byte(len(label))), label...)
		}
	}
	if domain != "" {
		b = append(b, 0)
	}
	return b
}
