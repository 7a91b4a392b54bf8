package config

import (
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"drover/pools/resolve"
)

// Attributes of rtnetlink(7) that package unix does not have.
const (
	ifaProto         = 11 // IFA_PROTO
	ifaProtoKernelRA = 2  // IFAPROT_KERNEL_RA: made from a router advertisement
)

// Locals6 returns the IPv6 addresses of the named interfaces of this host that machines can be
// told. An address that someone has configured wins over those that any router advertisement on
// the wire can add: of an interface with one of them, the others are left out. Temporary and
// deprecated ones, and those that another host may have, are never told.
func Locals6(names []string) (found []resolve.Local) {
	for _, name := range names {
		i, err := net.InterfaceByName(name)
		if err != nil {
			continue // it may come later
		}
		all, _ := addresses6(i.Index) // none: it has gone
		for _, p := range lasting6(all) {
			found = append(found, resolve.Local{Interface: name, Prefix: p})
		}
	}
	return found
}

// address6 is an IPv6 address of an interface.
type address6 struct {
	prefix netip.Prefix
	flags  uint32 // IFA_F_*
	proto  byte   // IFAPROT_*; 0: the kernel does not say
}

// lasting6 returns the addresses that machines can be told, the permanent ones if there are any.
func lasting6(all []address6) (found []netip.Prefix) {
	permanent := false
	for _, a := range all {
		const never = unix.IFA_F_TEMPORARY | unix.IFA_F_DEPRECATED | unix.IFA_F_DADFAILED
		tentative := a.flags&unix.IFA_F_TENTATIVE != 0 && a.flags&unix.IFA_F_OPTIMISTIC == 0
		if addr := a.prefix.Addr(); !isHost6(addr) || addr.IsLinkLocalUnicast() || tentative || a.flags&never != 0 {
			continue
		}
		lasts := a.flags&unix.IFA_F_PERMANENT != 0 && a.proto != ifaProtoKernelRA
		if lasts && !permanent {
			permanent, found = true, nil
		}
		if lasts == permanent {
			found = append(found, a.prefix)
		}
	}
	return found
}

// addresses6 asks the kernel for the IPv6 addresses of an interface, in its order.
func addresses6(index int) (all []address6, err error) {
	data, err := syscall.NetlinkRIB(unix.RTM_GETADDR, unix.AF_INET6)
	if err != nil {
		return nil, err
	}
	messages, err := syscall.ParseNetlinkMessage(data)
	if err != nil {
		return nil, err
	}
	for _, m := range messages {
		if m.Header.Type != unix.RTM_NEWADDR || len(m.Data) < unix.SizeofIfAddrmsg || int(binary.NativeEndian.Uint32(m.Data[4:])) != index {
			continue
		}
		attributes, err := syscall.ParseNetlinkRouteAttr(&m)
		if err != nil {
			return nil, err
		}
		a := address6{flags: uint32(m.Data[2])}
		local := false
		for _, t := range attributes {
			switch v := t.Value; {
			case t.Attr.Type == unix.IFA_LOCAL && len(v) == 16, t.Attr.Type == unix.IFA_ADDRESS && len(v) == 16 && !local:
				local = local || t.Attr.Type == unix.IFA_LOCAL
				a.prefix = netip.PrefixFrom(netip.AddrFrom16([16]byte(v)), int(m.Data[1]))
			case t.Attr.Type == unix.IFA_FLAGS && len(v) == 4:
				a.flags = binary.NativeEndian.Uint32(v)
			case t.Attr.Type == ifaProto && len(v) > 0:
				a.proto = v[0]
			}
		}
		if a.prefix.IsValid() && !slices.ContainsFunc(all, func(b address6) bool { return b.prefix == a.prefix }) {
			all = append(all, a)
		}
	}
	return all, nil
}
