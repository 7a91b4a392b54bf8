package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"drover/cmd/drover/server"
	"drover/pools"
	"drover/pools/config"
	"drover/pools/ilo"
)

// ofConfig are the flags that say of a chassis what the config says of one that
// is named there.
func ofConfig() []string {
	return []string{
		"chassis", "from-file", "via", "nodes", "name-template", "ip-template", "nic", "pool", "tag",
		"user", "password-file", "legacy", "tls-pin", "host-key", "prompt",
	}
}

// sources finds out which chassis are asked, and how.
func (m *moonshotImport) sources(cmd *cobra.Command, names []string) (out []*source, err error) {
	if m.via != "auto" && m.via != "ssh" && m.via != "rest" {
		return nil, fmt.Errorf("--via %q: want auto, ssh or rest", m.via)
	}
	chosen, err := ilo.ParseSelection(m.nodes)
	if err != nil {
		return nil, fmt.Errorf("--nodes: %w", err)
	}
	if len(names) > 0 {
		return m.named(cmd, names)
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	switch {
	case m.fromFile != "" && len(m.chassis) > 0:
		return nil, errors.New("--chassis and --from-file: give one of them")
	case m.fromFile != "":
		out = append(out, m.pasted())
	case len(m.chassis) == 0:
		return nil, errNoChassis
	case len(m.chassis) > 1 && (m.bmc.hostKey != "" || m.bmc.tlsPin != ""):
		return nil, errors.New("--host-key and --tls-pin are for one --chassis: each has its own (leave them out to pin at first use)")
	}
	seen := map[string]bool{}
	for _, text := range m.chassis {
		at, err := parseChassis(text)
		if err != nil {
			return nil, err
		}
		for _, key := range []string{at.name, at.address} {
			if seen[key] {
				return nil, fmt.Errorf("--chassis %q: %s is there twice", text, key)
			}
			seen[key] = true
		}
		out = append(out, &source{at: at})
	}
	for _, s := range out {
		n := m.naming
		n.Chassis, n.Pool, n.Tags, n.Place = s.at.name, m.pool, m.tags, m.apply
		s.bmc, s.which = m.bmc, chosen
		if s.namer, err = ilo.NewNamer(n); err != nil {
			return nil, fmt.Errorf("chassis %s: %w", s.at.name, err)
		}
	}
	return out, nil
}

// pasted is the file of --from-file. It is named after itself when no name is
// given.
func (m *moonshotImport) pasted() *source {
	name, file, named := strings.Cut(m.fromFile, "=")
	if !named {
		file = m.fromFile
		name = strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	}
	return &source{at: chassisAt{name: name}, file: file}
}

// named are chassis of the config file.
func (m *moonshotImport) named(cmd *cobra.Command, names []string) (out []*source, err error) {
	for _, name := range ofConfig() {
		if cmd.Flags().Changed(name) {
			return nil, fmt.Errorf("--%s: of a chassis that is named, the config file says it", name)
		}
	}
	file := m.config
	if file == "" {
		file = defaultConfig
	}
	farm, err := config.Load(file)
	if err != nil {
		return nil, err
	}
	if m.apply {
		m.config = "" // the nodes are compared with the server's
	}
	m.pool = "of the config" // for check; each chassis has its own
	if err := m.check(); err != nil {
		return nil, err
	}
	for i, name := range names {
		c, ok := farm.Chassis(name)
		if !ok {
			return nil, fmt.Errorf("%s has no chassis %q", file, name)
		}
		if slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("%s is there twice", name)
		}
		s := &source{named: true, bmc: m.bmc, at: chassisAt{name: name, scheme: map[pools.Via]string{pools.ViaREST: "https"}[c.Via], address: c.Address}}
		s.bmc.of(farm, c)
		n := server.NamingOf(c)
		n.Place = m.apply
		if s.namer, err = ilo.NewNamer(n); err != nil {
			return nil, fmt.Errorf("chassis %s: %w", name, err)
		}
		if s.which, err = ilo.ParseSelection(c.Nodes); err != nil {
			return nil, fmt.Errorf("chassis %s: %w", name, err)
		}
		out = append(out, s)
	}
	return out, nil
}
