// Package nodeconfig makes the config of a node from its Plan: it renders the templates,
// reads what the settings refer to, and translates settings that need no program on the
// node into files and units.
//
// It does not know requests, keys and boots.
package nodeconfig

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"drover/pools"
	"drover/pools/resolve"
)

// maxTotal bounds the contents of a config, in bytes: drover-init reads answers of 16 MiB,
// and base64 makes a content longer by a third.
const maxTotal = 10 << 20

// References reads what settings refer to.
type References interface {
	// Read returns the content that a reference names. The errors name the reference, and
	// no content.
	Read(ctx context.Context, r pools.Reference) ([]byte, error)
}

// Gateways makes what the gateways of clusters run.
type Gateways interface {
	// Gateway returns the files by path and the units by name that make a node a host of
	// the cluster that its Plan names. They have credentials.
	Gateway(ctx context.Context, p *resolve.Plan) (map[string]pools.File, map[string]pools.Unit, error)
}

// Maker makes the configs of nodes.
type Maker struct {
	References References // nil: settings refer to nothing
	Gateways   Gateways   // nil: no node is a gateway
	// Secret is what the SSH host keys of nodes and their CA are derived from, 32 bytes or
	// more. Empty: nodes make their own.
	Secret []byte
}

// Make returns the config of a node: its Plan with rendered templates, and without
// references.
func (k Maker) Make(ctx context.Context, p *resolve.Plan) (pools.NodeConfig, error) {
	m := &making{Maker: k, ctx: ctx, plan: p}
	c := pools.NodeConfig{
		Hostname:          p.Node,
		Domain:            p.Domain(p.Address),
		Pool:              p.Pool,
		MachineID:         p.MachineID(),
		Timezone:          p.Timezone,
		SSHAuthorizedKeys: p.SSHAuthorizedKeys,
		Modules:           p.Modules,
		Sysctls:           p.Sysctls,
		Mounts:            p.Mounts,
		Disks:             p.Disks,
		Zram:              p.Zram,
		Units:             p.Units,
		Join:              p.Cluster != "",
		Hosts:             p.Hosts,
		MaskUnits:         p.MaskUnits,
		Env:               p.Env,
	}
	errs := []error{m.tenant(&c), m.scripts(&c), m.files(&c), m.network(&c), m.cron(&c), m.password(&c), m.hostKey(&c), m.gateway(&c)}
	m.resolver(&c)
	m.environment(&c)
	if m.total > maxTotal {
		errs = append(errs, fmt.Errorf("the files and scripts of the node are %d bytes, more than %d: put some into the image", m.total, maxTotal))
	}
	return c, errors.Join(errs...)
}

// making is a config in the making.
type making struct {
	Maker
	ctx   context.Context
	plan  *resolve.Plan
	total int // bytes of contents
}

// read returns the content of a reference.
func (m *making) read(r pools.Reference) ([]byte, error) {
	if m.References == nil {
		return nil, fmt.Errorf("%s: this server reads no references", r.Place())
	}
	return m.References.Read(m.ctx, r)
}

// scripts adds the scripts in the order in which they run: by stage, then by name.
func (m *making) scripts(c *pools.NodeConfig) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(m.plan.Scripts)) {
		run, err := m.script(name)
		if err != nil {
			errs = append(errs, fmt.Errorf("script %q: %w", name, err))
		}
		s := m.plan.Scripts[name]
		m.total += len(run)
		c.Scripts = append(c.Scripts, pools.NamedScript{Name: name, Stage: s.Stage, Run: run, Source: s.Source})
	}
	stages := pools.Stages()
	slices.SortStableFunc(c.Scripts, func(a, b pools.NamedScript) int {
		return cmp.Compare(slices.Index(stages, a.Stage), slices.Index(stages, b.Stage))
	})
	return errors.Join(errs...)
}

func (m *making) script(name string) (string, error) {
	s := m.plan.Scripts[name]
	if !s.IsReference() {
		return pools.Render(name, s.Run, m.plan)
	}
	b, err := m.read(s.Reference)
	if err == nil && !s.Source && !strings.HasPrefix(string(b), "#!") {
		err = fmt.Errorf(`%s does not name its interpreter: begin it with "#!/bin/sh", or add source: true`, s.Place())
	}
	return string(b), err
}

// files adds the files of the operator.
func (m *making) files(c *pools.NodeConfig) error {
	var errs []error
	for _, path := range slices.Sorted(maps.Keys(m.plan.Files)) {
		f := m.plan.Files[path]
		content, err := m.content(path, f)
		if err != nil {
			errs = append(errs, fmt.Errorf("file %s: %w", path, err))
			continue
		}
		m.add(c, path, f.With(content))
	}
	return errors.Join(errs...)
}

func (m *making) content(path string, f pools.File) (content []byte, err error) {
	if !f.IsReference() {
		content, err = f.Bytes()
	} else {
		content, err = m.read(f.Reference)
	}
	if err != nil || !f.IsTemplate() {
		return content, err
	}
	text, err := pools.Render(path, string(content), m.plan)
	if err != nil && f.IsReference() {
		err = fmt.Errorf("%s is not a template that this node can use", f.Place()) // the cause may quote a secret
	}
	return []byte(text), err
}

// add adds a file.
func (m *making) add(c *pools.NodeConfig, path string, f pools.File) {
	if c.Files == nil {
		c.Files = map[string]pools.File{}
	}
	m.total += len(f.Content) + len(f.Base64)
	c.Files[path] = f
}

// addOwn adds a file of drover's own, unless the operator has one at its path.
func (m *making) addOwn(c *pools.NodeConfig, path, mode, content string) {
	if _, has := c.Files[path]; !has {
		m.add(c, path, pools.File{Content: content, Mode: mode})
	}
}

// gateway adds what makes the node a host of a cluster, and keeps a kubelet of its image from
// starting.
func (m *making) gateway(c *pools.NodeConfig) error {
	if m.plan.Gateway == "" {
		return nil
	}
	if m.Gateways == nil {
		return errors.New("this server makes no gateways")
	}
	files, units, err := m.Gateways.Gateway(m.ctx, m.plan)
	if err != nil {
		return fmt.Errorf("gateway of cluster %q: %w", m.plan.Gateway, err)
	}
	for path, f := range files {
		m.add(c, path, f)
	}
	all := maps.Clone(c.Units) // the Plan's are shared
	if all == nil {
		all = map[string]pools.Unit{}
	}
	maps.Copy(all, units)
	c.Units, c.MaskUnits = all, append(slices.Clip(c.MaskUnits), "kubelet.service")
	return nil
}

// password adds the hash of root's password.
func (m *making) password(c *pools.NodeConfig) error {
	s := m.plan.RootPasswordHash
	c.RootPasswordHash = s.Text
	if !s.IsReference() {
		return nil
	}
	b, err := m.read(s.Reference)
	if err != nil {
		return fmt.Errorf("rootPasswordHash: %w", err)
	}
	if c.RootPasswordHash = strings.TrimSpace(string(b)); !pools.IsPasswordHash(c.RootPasswordHash) {
		c.RootPasswordHash = ""
		return fmt.Errorf("rootPasswordHash: %s has no hash of crypt(5)", s.Place())
	}
	return nil
}
