package dhcp

import (
	"encoding/binary"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/pools"
)

// Option codes (RFC 2132 unless another is named).
const (
	optPad         = 0
	optSubnetMask  = 1
	optRouter      = 3
	optDNS         = 6
	optHostName    = 12
	optDomain      = 15
	optBroadcast   = 28
	optVendor      = 43
	optRequested   = 50
	optLease       = 51
	optOverload    = 52
	optMessageType = 53
	optServerID    = 54
	optParameters  = 55
	optMessage     = 56
	optMaxSize     = 57
	optRenew       = 58
	optRebind      = 59
	optClass       = 60
	optClientID    = 61
	optTFTPServer  = 66
	optBootFile    = 67
	optRelay       = 82 // RFC 3046
	optMachineID   = 97 // RFC 4578
	optIPXE        = 175
	optEnd         = 255
)

const (
	// defaultLease is given when the plan names no time.
	defaultLease = 12 * time.Hour

	// maxBootFile is the room of the BOOTP file field less its final NUL.
	maxBootFile = 127

	// headerSize is the fixed part of a message with the magic cookie, and
	// minMessage what every client must accept (RFC 2131, section 2), both
	// without the 28 bytes of IP and UDP headers that option 57 counts.
	headerSize  = 240
	udpOverhead = 28
	minMessage  = 576 - udpOverhead
	maxMessage  = 1500 - udpOverhead
)

// reserved are the options that the protocol itself is made of: no tag sets
// them.
func reserved(code uint8) bool {
	switch code {
	case optPad, optRequested, optLease, optOverload, optMessageType, optServerID, optParameters,
		optMessage, optMaxSize, optRenew, optRebind, optClientID, optRelay, optMachineID, optEnd:
		return true
	}
	return false
}

// needed are the options without which a client has no address or does not
// boot. They are sent unasked and are never left out.
func needed(code uint8) bool {
	switch code {
	case optSubnetMask, optRouter, optVendor, optClass, optTFTPServer, optBootFile, optIPXE:
		return true
	}
	return reserved(code)
}

// addLease adds what makes an address a lease.
func addLease(o dhcpv4.Options, p *pools.Plan) {
	lease := time.Duration(p.Lease)
	if lease <= 0 {
		lease = defaultLease
	}
	o[optLease] = seconds(lease)
	o[optRenew] = seconds(lease / 2)        // T1 and T2 as RFC 2131, section 4.4.5,
	o[optRebind] = seconds(lease - lease/8) // has them by default
}

// addNetwork adds what the client needs to know of its network and itself, as
// far as it asks, and the options of its tags.
func addNetwork(o dhcpv4.Options, c client, p *pools.Plan) {
	o[optSubnetMask] = mask(p.Subnet.CIDR)
	if r := p.Subnet.Router; r.Is4() && (c.wants(optRouter) || c.netboot()) {
		o[optRouter] = r.AsSlice()
	}
	if dns := addrs(p.Subnet.DNS); len(dns) > 0 && c.wants(optDNS) {
		o[optDNS] = dns
	}
	if p.Subnet.Domain != "" && c.wants(optDomain) {
		o[optDomain] = []byte(p.Subnet.Domain)
	}
	if p.Node != "" && c.wants(optHostName) {
		o[optHostName] = []byte(p.Node)
	}
	if b := broadcast(p.Subnet.CIDR); b.IsValid() && c.wants(optBroadcast) {
		o[optBroadcast] = b.AsSlice()
	}
	for _, opt := range p.Options {
		if !reserved(opt.Code) && c.wants(opt.Code) {
			o[opt.Code] = opt.Data
		}
	}
}

// addBoot adds what a boot program needs to find its loader, asked for or not:
// ROMs leave options out of their list that they do not boot without. Vendor
// options of the operator stand.
func addBoot(o dhcpv4.Options, c client, boot pools.BootTarget) {
	o[optBootFile] = []byte(boot.File)
	if boot.Server.Is4() {
		o[optTFTPServer] = []byte(boot.Server.String())
	}
	code, data := uint8(optVendor), []byte(nil)
	switch {
	case c.httpClass():
		// UEFI HTTP Boot takes an answer for its own only with this class.
		o[optClass] = []byte("HTTPClient")
	case c.ipxe:
		// Encapsulated 175.176, no-pxedhcp: without it iPXE waits up to
		// three seconds for the offer of a proxyDHCP server.
		code, data = optIPXE, []byte{176, 1, 1}
	case c.pxeClass():
		o[optClass] = []byte("PXEClient")
		// PXE_DISCOVERY_CONTROL (6) = 8: no boot server discovery, load
		// the file named in this answer.
		data = []byte{6, 1, 8, 0xff}
	}
	if _, set := o[code]; !set && data != nil {
		o[code] = data
	}
}

// fit leaves out options that the client can do without, those of the highest
// codes first, until the message has at most limit bytes. It returns what it
// left out.
func fit(o dhcpv4.Options, limit int) (left []uint8) {
	size := headerSize + 1 // the END option
	for _, data := range o {
		size += optionSize(data)
	}
	if size <= limit {
		return nil
	}
	codes := slices.Sorted(maps.Keys(o))
	for _, code := range slices.Backward(codes) {
		if size <= limit {
			break
		}
		if needed(code) {
			continue
		}
		size -= optionSize(o[code])
		delete(o, code)
		left = append(left, code)
	}
	return left
}

// optionSize is the room that an option takes; what is longer than 255 bytes
// is sent in pieces (RFC 3396).
func optionSize(data []byte) int {
	return len(data) + 2*max(1, (len(data)+254)/255)
}

// sizeLimit is the largest message that the client takes (option 57), within
// what fits an Ethernet frame.
func sizeLimit(req *dhcpv4.DHCPv4) int {
	n, err := req.MaxMessageSize()
	if err != nil {
		return minMessage
	}
	return min(max(int(n)-udpOverhead, minMessage), maxMessage)
}

func seconds(d time.Duration) []byte {
	s := min(int64(d/time.Second), 0xfffffffe) // all ones would be "for ever"
	return binary.BigEndian.AppendUint32(nil, uint32(s))
}

func mask(p netip.Prefix) []byte {
	return binary.BigEndian.AppendUint32(nil, ^uint32(0)<<(32-max(0, p.Bits())))
}

// broadcast returns the last address of an IPv4 network; the zero Addr for a
// network that has no broadcast address (RFC 3021).
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
