package importer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"drover/hardware/bmc"
	"drover/hardware/redfish"
)

// maxHosts bounds a range of addresses.
const maxHosts = 4096

// ILO imports servers with an iLO of their own.
type ILO struct {
	Target

	Hosts []string // addresses, names, networks, ranges
	Via   string   // auto, xmldata or redfish
	Name  string   // a template over .Serial, .UUID and .Host

	Parallel int                       // iLOs at a time
	Base     func() (bmc.Login, error) // pins and timeouts
	Login    func() (bmc.Login, error) // Base with the password and the other flags
}

// iloHost is an address to read, with the result.
type iloHost struct {
	address string
	ranged  bool // it is one of a range: an unreachable address is no error

	server redfish.Server
	err    error
}

// Run imports the servers. It returns errors in the fields and of the target. Errors of
// single iLOs are in the result.
func (m *ILO) Run(ctx context.Context) (*Result, error) {
	hosts, err := m.hosts()
	if err != nil {
		return nil, usage(err)
	}
	login, err := m.Login()
	if err != nil && m.Via != "redfish" {
		login, err = m.Base() // xmldata needs no password
	}
	switch {
	case err != nil:
		return nil, err
	case len(hosts) > 1 && login.TLSPin != "":
		return nil, &UsageError{errors.New("--tls-pin is for one host: each has its own (leave it out to pin at first use)")}
	}
	inParallel(len(hosts), m.Parallel, func(i int) { hosts[i].server, hosts[i].err = m.read(ctx, login, hosts[i].address) })
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", bmc.ErrUnreachable, err)
	}
	r, err := m.open(ctx)
	if err != nil {
		return nil, err
	}
	var servers []NamedServer
	for _, h := range hosts {
		switch {
		case h.err == nil:
			servers = append(servers, NamedServer{Host: h.address, Server: h.server})
		case !h.ranged || !errors.Is(h.err, bmc.ErrUnreachable):
			r.fail(h.address, h.err)
		}
	}
	if len(servers) == 0 && len(r.Failed) == 0 {
		r.fail("--hosts", fmt.Errorf("%w: none of %d addresses has an iLO", bmc.ErrUnreachable, len(hosts)))
	}
	changes, failed, err := CompareServers(servers, m.Name, m.Pool, m.Tags, r.stored())
	if err != nil {
		return nil, err
	}
	r.Failed, r.Done = append(r.Failed, failed...), len(changes)
	return r, r.add(ctx, "ilo", changes, nil)
}

// read reads one iLO. If xmldata is switched off or has no MACs, and there is a
// password, it reads Redfish.
func (m *ILO) read(ctx context.Context, l bmc.Login, address string) (redfish.Server, error) {
	l.Address = address
	c, err := redfish.Open(l)
	if err != nil {
		return redfish.Server{}, err
	}
	defer c.Close()
	if m.Via == "redfish" {
		return c.Server(ctx)
	}
	server, err := c.XMLData(ctx)
	enough := err == nil && len(server.MACs) > 0
	if m.Via == "xmldata" || enough || l.Password == "" || errors.Is(err, bmc.ErrUnreachable) || errors.Is(err, bmc.ErrHostKey) {
		return server, err
	}
	better, errRedfish := c.Server(ctx)
	if errRedfish != nil && err == nil {
		return server, nil
	}
	return better, errRedfish
}

// hosts checks the fields and returns the addresses to read.
func (m *ILO) hosts() (out []*iloHost, err error) {
	if m.Via != "auto" && m.Via != "xmldata" && m.Via != "redfish" {
		return nil, fmt.Errorf("--via %q: want auto, xmldata or redfish", m.Via)
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	for _, text := range m.Hosts {
		more, err := parseHosts(text)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	slices.SortStableFunc(out, func(a, b *iloHost) int { return cmp.Compare(a.address, b.address) })
	out = slices.CompactFunc(out, func(a, b *iloHost) bool { return a.address == b.address })
	switch {
	case len(out) == 0:
		return nil, errors.New("--hosts is missing: which iLOs?")
	case len(out) > maxHosts:
		return nil, fmt.Errorf("--hosts: %d addresses, more than %d", len(out), maxHosts)
	}
	return out, nil
}

// parseHosts reads a name, an address, a network or a range.
func parseHosts(text string) ([]*iloHost, error) {
	if net, err := netip.ParsePrefix(text); err == nil {
		return hostsFrom(text, net.Masked().Addr(), net.Contains)
	}
	if a, b, ok := strings.Cut(text, "-"); ok {
		first, errA := netip.ParseAddr(a)
		last, errB := netip.ParseAddr(b)
		if errA == nil && errB == nil {
			if last.Less(first) {
				return nil, fmt.Errorf("--hosts %q: the range ends before it begins", text)
			}
			return hostsFrom(text, first, func(a netip.Addr) bool { return !last.Less(a) })
		}
	}
	if text == "" || strings.ContainsAny(text, "/@ ") {
		return nil, fmt.Errorf("--hosts %q: want a name, an address, a network or a range", text)
	}
	return []*iloHost{{address: text}}, nil
}

func hostsFrom(text string, first netip.Addr, in func(netip.Addr) bool) ([]*iloHost, error) {
	var out []*iloHost
	for a := first; a.IsValid() && in(a); a = a.Next() {
		if len(out) > maxHosts {
			return nil, fmt.Errorf("--hosts %q: more than %d addresses", text, maxHosts)
		}
		address := a.String()
		if a.Is6() {
			address = "[" + address + "]"
		}
		out = append(out, &iloHost{address: address, ranged: true})
	}
	return out, nil
}
