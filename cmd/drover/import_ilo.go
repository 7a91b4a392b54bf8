package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"drover/pools/ilo"
)

// maxHosts bounds a range of addresses.
const maxHosts = 4096

// iloImport is "drover import ilo".
type iloImport struct {
	importTarget
	bmc   bmcFlags
	hosts []string
	via   string
	name  string
}

func newImportILOCommand() *cobra.Command {
	m := &iloImport{}
	cmd := &cobra.Command{
		Use:   "ilo --hosts ADDRESSES --pool POOL",
		Short: "Nodes of servers with an iLO of their own",
		Long: `Ilo asks the iLOs of servers for their machine's serial number and MACs. iLO 4
and later show them to anyone at /xmldata, unless that is switched off; Redfish
(--via redfish) wants a login. The MACs of the iLOs themselves are never
imported. Addresses in a range that do not answer are left out.

A node is named after the serial number, or as --name-template says, which knows
.Serial, .UUID and .Host.`,
		Example: `  drover import ilo --hosts 10.0.0.0/24 --pool compute
  drover import ilo --hosts ilo-a1,ilo-a2 --via redfish --password-file ilo.pass --pool compute --apply`,
		Args:                  importArgs,
		DisableFlagsInUseLine: true,
		RunE:                  func(cmd *cobra.Command, _ []string) error { return m.run(cmd) },
	}
	f := cmd.Flags()
	f.StringSliceVar(&m.hosts, "hosts", nil, "addresses, names, networks such as 10.0.0.0/24, or ranges such as 10.0.0.5-10.0.0.9")
	f.StringVar(&m.via, "via", "auto", "auto|xmldata|redfish; auto asks xmldata first")
	f.StringVar(&m.name, "name-template", "{{.Serial}}", "name of a node, made lower case")
	m.bmc.add(cmd, false)
	m.add(cmd)
	_ = cmd.RegisterFlagCompletionFunc("via", cobra.FixedCompletions([]string{"auto", "xmldata", "redfish"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// iloHost is an address to ask.
type iloHost struct {
	address string
	ranged  bool // one of a range: nobody said that it is there

	server ilo.Server
	err    error
}

func (m *iloImport) run(cmd *cobra.Command) error {
	hosts, err := m.check()
	if err != nil {
		return usage(err)
	}
	say := func(format string, args ...any) { fmt.Fprintf(cmd.ErrOrStderr(), "drover: "+format+"\n", args...) }
	login, err := m.bmc.open(say)
	if err != nil {
		if m.via == "redfish" {
			return usage(err)
		}
		login = m.bmc.anonymous(say)
	}
	inParallel(cmd.Context(), len(hosts), m.bmc.parallel, func(ctx context.Context, i int) { m.ask(ctx, login, hosts[i]) })
	if err := cmd.Context().Err(); err != nil {
		return &exitError{importUnreachable, err}
	}
	var out outcome
	var servers []ilo.NamedServer
	for _, h := range hosts {
		switch {
		case h.err == nil:
			out.done++
			servers = append(servers, ilo.NamedServer{Host: h.address, Server: h.server})
		case !h.ranged || !errors.Is(h.err, ilo.ErrUnreachable):
			out.fail(h.address, h.err)
		}
	}
	if len(servers) == 0 && len(out.failed) == 0 {
		out.fail("--hosts", fmt.Errorf("%w: none of %d addresses has an iLO", ilo.ErrUnreachable, len(hosts)))
	}
	stored, err := m.open(cmd.Context())
	if err != nil {
		return &exitError{importCode(err), err}
	}
	changes, err := ilo.CompareServers(servers, m.name, m.pool, m.tags, stored.known())
	if err != nil {
		return usage(err)
	}
	if err := stored.write(cmd, "ilo", changes, nil); err != nil {
		return &exitError{importCode(err), err}
	}
	out.note(changes)
	if err := stored.finish(cmd); err != nil {
		return usage(err)
	}
	return out.err()
}

// ask reads one iLO. After xmldata, which may be switched off or show no MACs,
// Redfish is asked when there is a password.
func (m *iloImport) ask(ctx context.Context, b *bmcs, h *iloHost) {
	site, err := b.site(h.address)
	if err != nil {
		h.err = usage(err)
		return
	}
	defer site.Close()
	if m.via != "redfish" {
		h.server, h.err = ilo.ScrapeXMLData(ctx, site)
		enough := h.err == nil && len(h.server.MACs) > 0
		if m.via == "xmldata" || enough || b.password == "" || errors.Is(h.err, ilo.ErrUnreachable) || errors.Is(h.err, ilo.ErrHostKey) {
			return
		}
	}
	server, err := ilo.ScrapeRedfish(ctx, site)
	if err == nil || h.err != nil || m.via == "redfish" {
		h.server, h.err = server, err
	}
}

// check reads the flags.
func (m *iloImport) check() ([]*iloHost, error) {
	if m.via != "auto" && m.via != "xmldata" && m.via != "redfish" {
		return nil, fmt.Errorf("--via %q: want auto, xmldata or redfish", m.via)
	}
	if err := m.importTarget.check(); err != nil {
		return nil, err
	}
	var out []*iloHost
	for _, text := range m.hosts {
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
	case len(out) > 1 && m.bmc.tlsPin != "":
		return nil, errors.New("--tls-pin is for one host: each has its own (leave it out to pin at first use)")
	}
	return out, nil
}

// parseHosts reads a name, an address, a network or a range.
func parseHosts(text string) ([]*iloHost, error) {
	if net, err := netip.ParsePrefix(text); err == nil {
		first := net.Masked().Addr()
		return hostsFrom(text, first, func(a netip.Addr) bool { return net.Contains(a) })
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

// anonymous is for what needs no login.
func (b *bmcFlags) anonymous(say func(format string, args ...any)) *bmcs {
	return &bmcs{flags: b, certs: &ilo.CertPins{Path: b.knownCerts, OnNew: func(address, print string) { say("%s: pinned %s at first use", address, print) }}}
}
