package dhcp6

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"strings"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/iana"

	"drover/dhcp"
	"drover/pools"
)

// identity is an identity association of a client: a number, and the addresses that the
// client has or would like.
type identity struct {
	code    dhcpv6.OptionCode // IA_NA, IA_TA or IA_PD
	id      []byte
	options options
}

// eachIA calls f for each identity association.
func (a *answer) eachIA(f func(identity)) { a.request.eachIA(f) }

func (r *Request) eachIA(f func(identity)) {
	n := 0
	for code, data, rest, ok := r.options.next(); ok && n < maxIAs; code, data, rest, ok = rest.next() {
		head := 12 // number, T1, T2
		switch code {
		case dhcpv6.OptionIANA, dhcpv6.OptionIAPD:
		case dhcpv6.OptionIATA:
			head = 4
		default:
			continue
		}
		if len(data) >= head {
			n++
			f(identity{code, data[:4], data[head:]})
		}
	}
}

// addresses returns the addresses of an identity association.
func (ia identity) addresses() iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		for code, data, rest, ok := ia.options.next(); ok; code, data, rest, ok = rest.next() {
			if code == dhcpv6.OptionIAAddr && len(data) >= 24 && !yield(address(data)) {
				return
			}
		}
	}
}

// give answers with the machine's address, in the first IA_NA. The others, and all
// without an address, get a status.
func (a *answer) give(t dhcpv6.MessageType, refusal iana.StatusCode) bool {
	own, err := a.own()
	if err == nil && t == dhcpv6.MessageTypeReply && a.hasIANA() {
		if err = a.commit(own); err != nil && !errors.Is(err, pools.ErrRefused) {
			return a.silence(dhcp.NoAddress, err)
		}
	}
	if err != nil && a.request.Type == dhcpv6.MessageTypeRebind {
		return a.silence(dhcp.NoAddress, err) // another server may know the address
	}
	a.begin(t)
	given, answered := false, false
	a.eachIA(func(ia identity) {
		answered = true
		switch {
		case ia.code == dhcpv6.OptionIAPD:
			a.addStatusIA(ia, iana.StatusNoPrefixAvail)
		case ia.code == dhcpv6.OptionIATA, err != nil, given:
			a.addStatusIA(ia, refusal)
		case a.request.Type == dhcpv6.MessageTypeRequest && !a.onLink(ia):
			a.addStatusIA(ia, iana.StatusNotOnLink)
			a.x.Warning = "it asks for an address of another network"
		default:
			a.addAddress(ia, own)
			given = true
		}
	})
	a.none = !given
	switch {
	case !answered:
		return a.silence(dhcp.Unusable, fmt.Errorf("a %s for no address", a.request.Type))
	case err != nil:
		a.x.Decision, a.x.Err = dhcp.NoAddress, err
		return true
	case !given:
		a.x.Decision, a.wait = dhcp.Refused, nil
		return true
	}
	a.x.Address, a.x.Decision = own, dhcp.Acknowledged
	if t == dhcpv6.MessageTypeAdvertise {
		// Without the highest preference UEFI waits 4.5 s for other servers.
		a.x.Decision, a.b = dhcp.Offered, appendOption(a.b, dhcpv6.OptionPreference, 255)
	}
	a.addOptions(own)
	return true
}

// hasIANA reports whether the client asks for an address.
func (a *answer) hasIANA() bool { return a.request.options.get(dhcpv6.OptionIANA) != nil }

// onLink reports whether the client's network has all addresses of an identity.
func (a *answer) onLink(ia identity) bool {
	for at := range ia.addresses() {
		if _, ok := a.plan.SubnetOf(at); !ok && !at.IsUnspecified() {
			return false
		}
	}
	return true
}

// wanted returns the first address that the client names, or the zero Addr.
func wanted(r *Request) (first netip.Addr) {
	r.eachIA(func(ia identity) {
		for at := range ia.addresses() {
			if !first.IsValid() && ia.code == dhcpv6.OptionIANA {
				first = at
			}
		}
	})
	return first
}

// own returns the address that belongs to the machine. A boot program gets the planned
// one. An operating system keeps the one that it has a lease of, until it boots again.
func (a *answer) own() (netip.Addr, error) {
	if a.plan.Retired && a.query.Keeps == a.plan.Address {
		return a.plan.Address, nil // whatever was leased in its name since: it runs on its own address
	}
	if !a.boots {
		if held, ok := a.leases().Holds(a.request.MAC, a.now); ok {
			if _, here := a.plan.SubnetOf(held); here {
				return held, nil
			}
		}
	}
	own, err := a.planned()
	if err == nil && a.boots {
		for _, mac := range a.plan.MACs {
			a.leases().Leave(mac, own, a.now)
		}
	}
	return own, err
}

// planned returns the address of the node, or else one of the range of its pool.
func (a *answer) planned() (netip.Addr, error) {
	switch p := a.plan; {
	case p.Holder != nil:
		return netip.Addr{}, &pools.LeasedError{Node: p.Node, Lease: *p.Holder}
	case p.Address.IsValid():
		return p.Address, nil
	case !p.Range.IsValid():
		return netip.Addr{}, fmt.Errorf("node %q has no ip6, and pool %q no range6", p.Node, p.Pool)
	}
	own, _, err := a.leases().Offer(a.plan, wanted(a.request), a.now)
	return own, err
}

// commit stores a lease of an address that the config does not give to the machine. A node
// that was not found by its MAC also leases its own address, by which HTTP finds it.
func (a *answer) commit(given netip.Addr) (err error) {
	if given == a.plan.Address && a.plan.Matched == "" {
		return nil
	}
	if a.wait, err = a.leases().Commit(a.plan, given, a.now); err != nil {
		return fmt.Errorf("lease %s: %w", given, err)
	}
	return nil
}

// addAddress adds an IA_NA with the machine's address. Other addresses that the client has
// get lifetimes of zero: it stops using them.
func (a *answer) addAddress(ia identity, own netip.Addr) {
	lease := uint32(a.plan.Lease.D() / time.Second)
	var at int
	a.b, at = begin(a.b, ia.code)
	a.b = append(a.b, ia.id...)
	renew, rebind := lease/2, lease/5*4
	if a.plan.Lease == pools.Infinite { // RFC 8415, section 7.7
		renew, rebind = lease, lease
	}
	a.b = binary.BigEndian.AppendUint32(a.b, renew)
	a.b = binary.BigEndian.AppendUint32(a.b, rebind)
	a.addIAAddr(own, lease)
	if a.request.Type == dhcpv6.MessageTypeRenew || a.request.Type == dhcpv6.MessageTypeRebind {
		for other := range ia.addresses() {
			if other != own {
				a.addIAAddr(other, 0)
			}
		}
	}
	a.b = end(a.b, at)
}

// addIAAddr adds an address. Preferred and valid lifetime are the lease time.
func (a *answer) addIAAddr(addr netip.Addr, lease uint32) {
	ip := addr.As16()
	a.b = appendOption(a.b, dhcpv6.OptionIAAddr, ip[:]...)
	binary.BigEndian.PutUint16(a.b[len(a.b)-18:], 24)
	a.b = binary.BigEndian.AppendUint32(a.b, lease)
	a.b = binary.BigEndian.AppendUint32(a.b, lease)
}

// addStatusIA adds an identity association without an address.
func (a *answer) addStatusIA(ia identity, code iana.StatusCode) {
	var at int
	a.b, at = begin(a.b, ia.code)
	a.b = append(a.b, ia.id...)
	if ia.code != dhcpv6.OptionIATA {
		a.b = append(a.b, make([]byte, 8)...) // T1, T2
	}
	a.status(code, "")
	a.b = end(a.b, at)
}

// leases returns the lease store; one without addresses if there is none.
func (a *answer) leases() dhcp.Leases {
	if a.server.Leases == nil {
		return dhcp.NoLeases{}
	}
	return a.server.Leases
}

// addOptions adds the options of the network, and for a boot program its loader. given is
// the address that the machine has or will have; it may be the zero Addr.
func (a *answer) addOptions(given netip.Addr) {
	subnet := a.plan.Subnet
	if s, ok := a.plan.SubnetOf(given); ok {
		subnet = s
	}
	if a.gets(dhcpv6.OptionDNSRecursiveNameServer) && !a.configures(dhcpv6.OptionDNSRecursiveNameServer) {
		var servers []byte
		for _, dns := range subnet.DNS {
			ip := dns.As16()
			servers = append(servers, ip[:]...)
		}
		if servers != nil {
			a.b = appendOption(a.b, dhcpv6.OptionDNSRecursiveNameServer, servers...)
		}
	}
	if domain := strings.Trim(a.plan.Domain(given), "."); domain != "" &&
		a.gets(dhcpv6.OptionDomainSearchList) && !a.configures(dhcpv6.OptionDomainSearchList) {
		a.b = appendOption(a.b, dhcpv6.OptionDomainSearchList, labels(domain)...)
	}
	if a.request.Type == dhcpv6.MessageTypeInformationRequest && a.request.asksFor(dhcpv6.OptionInformationRefreshTime) && a.plan.Lease > 0 {
		refresh := max(600, uint32(a.plan.Lease.D()/time.Second)) // IRT_MINIMUM
		a.b = appendOption(a.b, dhcpv6.OptionInformationRefreshTime, binary.BigEndian.AppendUint32(nil, refresh)...)
	}
	a.addName(given)
	if file := a.plan.Boot.File; a.boots && file != "" {
		a.b = appendOption(a.b, dhcpv6.OptionBootfileURL, []byte(file)...)
		if strings.HasPrefix(a.query.Class, httpClass) && !a.query.IPXE {
			class := binary.BigEndian.AppendUint32(nil, intel)
			class = binary.BigEndian.AppendUint16(class, uint16(len(httpClass)))
			a.b = appendOption(a.b, dhcpv6.OptionVendorClass, append(class, httpClass...)...)
		}
	}
	a.addConfigured()
}

// labels returns a domain name as DNS writes it (RFC 1035, section 3.1).
func labels(domain string) (b []byte) {
	for label := range strings.SplitSeq(domain, ".") {
		b = append(append(b, byte(len(label))), label...)
	}
	return append(b, 0)
}
