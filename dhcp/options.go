package dhcp

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/insomniacslk/dhcp/iana"

	"drover/dhcp/wire"
	"drover/pools"
	"drover/pools/resolve"
)

const (
	// defaultLease is the lease time when the plan has none.
	defaultLease = 12 * time.Hour

	// pxeBootItem is a sub-option of option 43 for PXE clients: the type and layer of a
	// boot server.
	pxeBootItem = 71

	// nameEnd is the size of the pad option (RFC 2132, section 3.1) behind option 67. Old ROMs
	// ignore the length of the option and read on to a NUL: of "undionly.kpxe" and option 51
	// behind it they ask for "undionly.kpxe3\x04".
	nameEnd = 1

	// maxBootFile is the size in bytes of the BOOTP file field, without its
	// final NUL.
	maxBootFile = 127
)

// echoed returns the codes of the options that a reply repeats unchanged: the
// relay's own option (RFC 3046), the client identifier (RFC 6842), the machine's
// UUID (RFC 4578, some ROMs compare it), and the selected network (RFC 3011).
func echoed() [4]uint8 {
	return [...]uint8{wire.OptRelay, wire.OptClientID, wire.OptMachineID, wire.OptSubnetSelection}
}

// These are how many of the echoed options the other replies repeat, from the first on:
// RFC 2131, table 3, forbids a NAK all others, and BOOTP has no others.
const (
	echoedInBOOTP = 1
	echoedInNAK   = 2
)

// reserved reports whether the protocol itself uses an option. No tag sets such
// an option.
func reserved(code uint8) bool {
	switch code {
	case wire.OptPad, wire.OptRequested, wire.OptLease, wire.OptOverload, wire.OptMessageType, wire.OptServerID, wire.OptParameters,
		wire.OptMessage, wire.OptMaxSize, wire.OptRenew, wire.OptRebind, wire.OptClientID, wire.OptRelay, wire.OptMachineID, wire.OptSubnetSelection, wire.OptEnd:
		return true
	}
	return false
}

// essential reports whether a client without the option has no network or does
// not boot. Boot programs get these options unasked, because ROMs omit options
// from their list that they need to boot.
func essential(code uint8) bool {
	switch code {
	case wire.OptSubnetMask, wire.OptRouter, wire.OptVendor, wire.OptClass, wire.OptTFTPServer, wire.OptBootFile, wire.OptIPXE:
		return true
	}
	return reserved(code)
}

// addLease adds the lease time and the times T1 and T2.
func addLease(m *Message, p *resolve.Plan) {
	lease := time.Duration(p.Lease)
	if lease <= 0 {
		lease = defaultLease
	}
	if p.Lease == pools.Infinite { // it is never renewed
		m.options.PutUint32(wire.OptLease, 1<<32-1)
		return
	}
	m.options.PutUint32(wire.OptLease, seconds(lease))
	m.options.PutUint32(wire.OptRenew, seconds(lease/2))        // T1 and T2 have the defaults
	m.options.PutUint32(wire.OptRebind, seconds(lease-lease/8)) // of RFC 2131, section 4.4.5
}

// addNetwork adds the options of the subnet that contains the address of the
// client, and the options of the plan. It adds the mask always, and the others
// as far as the client gets them.
func (a *answer) addNetwork(m *Message, subnet *pools.Subnet) {
	if subnet.CIDR.IsValid() {
		m.options.PutUint32(wire.OptSubnetMask, mask(subnet.CIDR))
	}
	if subnet.Router.Is4() && a.includes(wire.OptRouter) {
		m.options.PutAddr(wire.OptRouter, subnet.Router)
	}
	if dns := addrs(subnet.DNS); len(dns) > 0 && a.includes(wire.OptDNS) {
		m.options.Set(wire.OptDNS, dns)
	}
	if subnet.Domain != "" && a.includes(wire.OptDomain) {
		m.options.Put(wire.OptDomain, []byte(subnet.Domain)...)
	}
	if b := broadcast(subnet.CIDR); b.IsValid() && a.includes(wire.OptBroadcast) {
		m.options.PutAddr(wire.OptBroadcast, b)
	}
	for i := range a.plan.Options {
		opt := &a.plan.Options[i]
		if !reserved(opt.Code) && opt.For(a.Class) && (opt.Forced || a.includes(opt.Code)) {
			m.options.Set(opt.Code, opt.Data)
		}
	}
}

// includes reports whether the client gets an option that has a value.
func (a *answer) includes(code uint8) bool {
	if code == wire.OptIPv6Only {
		return a.parameters.Has(code) // RFC 8925, section 3.3: never to a client without a list
	}
	return a.asksFor(code) || a.netboot() && essential(code)
}

// addBoot adds the options by which a boot program finds its loader, even
// unasked. It keeps options 43 and 175 of the operator.
func (a *answer) addBoot(m *Message) {
	boot := &a.plan.Boot
	if boot.Server.Is4() {
		// iPXE needs siaddr even when the file is a URL. GRUB takes its server
		// from siaddr, not from option 66.
		m.siaddr = boot.Server
	}
	if !a.boots() {
		a.warnNoLoader()
		return
	}
	// shim derives the name of its second stage from this field, not from
	// option 67.
	if len(boot.File) <= maxBootFile {
		m.file = boot.File
	} else if !a.parameters.Has(wire.OptBootFile) {
		a.x.warn(fmt.Sprintf("boot file %q is longer than the BOOTP field: only in option 67", boot.File))
	}
	if a.req.bootp() {
		return
	}
	if m.file == "" || !a.readsFile() {
		m.options.Put(wire.OptBootFile, []byte(boot.File)...)
	}
	if boot.Server.Is4() {
		m.options.Put(wire.OptTFTPServer, []byte(boot.Server.String())...)
	}
	switch {
	case a.httpClass():
		// UEFI HTTP Boot accepts an answer only with this class.
		m.options.Put(wire.OptClass, []byte("HTTPClient")...)
	case a.IPXE:
		// Encapsulated 175.176, no-pxedhcp: without it iPXE waits up to
		// three seconds for the offer of a proxyDHCP server.
		if !m.options.Has(wire.OptIPXE) {
			m.options.Put(wire.OptIPXE, 176, 1, 1)
		}
	case a.pxeClass(), a.Firmware == pools.RaspberryPi:
		a.addPXE(m)
	}
}

// readsFile reports whether the client takes its boot file from the file field: the ROM of a PC that
// does not list option 67. Some choke on options that they did not ask for, and ISC dhcpd and Kea
// send it none.
func (a *answer) readsFile() bool {
	return a.Firmware == pools.BIOS && a.pxeClass() && !a.IPXE && a.hasParameterList && !a.parameters.Has(wire.OptBootFile)
}

// addBootItem repeats the client's choice from a boot menu (PXE_BOOT_ITEM, 43.71). PXE
// clients take an answer without it for the answer to another choice (PXE 2.1, section
// 2.2.3). It goes behind the operator's own sub-options.
func (a *answer) addBootItem(m *Message) {
	if !a.pxeClass() {
		return
	}
	var item []byte
	_ = wire.EachOption(a.req.options.Get(wire.OptVendor), func(code uint8, data []byte) {
		if code == pxeBootItem && len(data) == 4 {
			item = data
		}
	})
	if item == nil {
		return
	}
	var all []byte
	err := wire.EachOption(m.options.Get(wire.OptVendor), func(code uint8, data []byte) {
		if code != pxeBootItem {
			all = wire.AppendOption(all, code, data)
		}
	})
	if err == nil {
		m.options.Set(wire.OptVendor, append(wire.AppendOption(all, pxeBootItem, item), wire.OptEnd))
	}
}

// warnNoLoader warns if the client is a boot program that has nothing to load: its architecture is
// one without a loader. GRUB from a medium needs none.
func (a *answer) warnNoLoader() {
	switch {
	case !a.netboot() || a.Firmware != "" || a.IPXE || a.grub:
	case len(a.Archs) == 0:
		a.x.warn("no loader for this architecture: neither option 93 nor the class names one")
	default:
		arch := iana.Arch(a.Archs[0])
		a.x.warn(fmt.Sprintf("no loader for this architecture: %d (%s)", uint16(arch), arch))
	}
}

// addPXE marks an answer as one for a PXE client, which loads the file of the
// answer. PXE_DISCOVERY_CONTROL (43.6) = 8 keeps the client from searching for
// boot servers first, also together with a site's own sub-options.
func (c *client) addPXE(m *Message) {
	m.options.Put(wire.OptClass, []byte("PXEClient")...)
	switch site := m.options.Get(wire.OptVendor); {
	case len(site) > 0 && c.Firmware == pools.RaspberryPi:
		m.options.Set(wire.OptVendor, withVendor([]byte(raspberryPiMenu), site))
	case len(site) > 0:
		m.options.Set(wire.OptVendor, withVendor([]byte{6, 1, 8, wire.OptEnd}, site))
	case c.Firmware == pools.RaspberryPi:
		m.options.Put(wire.OptVendor, []byte(raspberryPiMenu)...)
	default:
		m.options.Put(wire.OptVendor, 6, 1, 8, wire.OptEnd)
	}
}

// withVendor returns the site's option 43 with the sub-options of own in front that it does
// not set. A site that sets the boot servers, menu, prompt or item of PXE (43.8, 9, 10, 71) keeps
// its option as it is: with 43.6 = 8 the client would not look at them. So does a site whose
// option has no sub-options.
func withVendor(own, site []byte) []byte {
	var set wire.CodeSet
	size := 0
	if wire.EachOption(site, func(code uint8, data []byte) {
		set.Add(code)
		size += 2 + len(data)
	}) != nil {
		return site
	}
	if slices.ContainsFunc([]uint8{8, 9, 10, 71}, set.Has) {
		return site
	}
	var all []byte
	_ = wire.EachOption(own, func(code uint8, data []byte) {
		if !set.Has(code) {
			all = wire.AppendOption(all, code, data)
		}
	})
	if all == nil {
		return site
	}
	all = append(all, site...)
	if size == len(site) { // without END
		all = append(all, wire.OptEnd)
	}
	return all
}

// raspberryPiMenu is the option 43 without which a Raspberry Pi takes no answer: a PXE
// menu with this item, as dnsmasq writes it. The board looks for the text alone.
const raspberryPiMenu = "\x06\x01\x03" + // discovery control: no broadcast, no multicast
	"\x0a\x04\x00PXE" + // prompt: at once
	"\x09\x14\x00\x00\x11Raspberry Pi Boot\xff"

func seconds(d time.Duration) uint32 {
	return uint32(min(int64(d/time.Second), 0xfffffffe)) // all ones would mean infinity
}

func mask(p netip.Prefix) uint32 { return ^uint32(0) << (32 - p.Bits()) }

// broadcast returns the last address of an IPv4 network, or the zero Addr for a
// network without a broadcast address (RFC 3021).
func broadcast(p netip.Prefix) netip.Addr {
	if !p.IsValid() || !p.Addr().Is4() || p.Bits() > 30 {
		return netip.Addr{}
	}
	a := p.Addr().As4()
	n := binary.BigEndian.Uint32(a[:]) | ^uint32(0)>>p.Bits()
	binary.BigEndian.PutUint32(a[:], n)
	return netip.AddrFrom4(a)
}

func addrs(list []netip.Addr) []byte {
	var b []byte
	for _, a := range list {
		if a.Is4() {
			b = append(b, a.AsSlice()...)
		}
	}
	return b
}
