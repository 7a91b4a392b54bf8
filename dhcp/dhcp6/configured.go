package dhcp6

import (
	"fmt"
	"slices"

	"github.com/insomniacslk/dhcp/dhcpv6"

	"drover/pools/resolve"
)

// maxAnswer is the size in bytes of the longest answer that options of the config fill: what
// fits into the packets that each network of IPv6 carries (RFC 8200, section 5), so that
// firmware need not join fragments.
const maxAnswer = 1280 - 40 - 8

// gets reports whether the client gets an option: one that it asks for, and as a boot program
// also name servers and domain.
func (a *answer) gets(code dhcpv6.OptionCode) bool {
	switch code {
	case dhcpv6.OptionDNSRecursiveNameServer, dhcpv6.OptionDomainSearchList:
		return a.boots || a.request.asksFor(code)
	case dhcpv6.OptionBootfileParam: // nothing without the file that it is for; iPXE has its boot script
		return a.boots && !a.query.IPXE && a.plan.Boot.File != "" && a.request.asksFor(code)
	}
	return a.request.asksFor(code)
}

// configures reports whether the config sets an option of the machine, which then replaces
// the one of its subnet.
func (a *answer) configures(code dhcpv6.OptionCode) bool {
	return slices.ContainsFunc(a.plan.Options6, func(o resolve.Option6) bool { return o.Code == uint16(code) })
}

// addConfigured adds the options of the config. Those that make the answer too long are left
// out whole.
func (a *answer) addConfigured() {
	var omitted []uint16
	room := maxAnswer - a.request.aroundAnswer()
	for i := range a.plan.Options6 {
		o := &a.plan.Options6[i]
		switch {
		case !o.Forced && !a.gets(dhcpv6.OptionCode(o.Code)):
		case len(a.b)+4+len(o.Data) > room:
			omitted = append(omitted, o.Code)
		default:
			a.b = appendOption(a.b, dhcpv6.OptionCode(o.Code), o.Data...)
		}
	}
	if omitted != nil && a.x.Warning == "" {
		a.x.Warning = fmt.Sprintf("answer too long for the client: left out options %d", omitted)
	}
}

// aroundAnswer returns how many bytes the messages for relay agents take.
func (r *Request) aroundAnswer() (n int) {
	for i := range r.relays[:r.hops] {
		n += relayHeader + 4
		for _, code := range returned() {
			if data := r.relays[i].options.get(code); data != nil {
				n += 4 + len(data)
			}
		}
	}
	return n
}
