package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"drover/pools"
	"drover/pools/ilo"
)

// moonshotImport is "drover import moonshot".
type moonshotImport struct {
	importTarget
	bmc      bmcFlags
	chassis  []string
	fromFile string
	via      string
	nodes    string
	save     string
	naming   ilo.Naming
	options  ilo.Options
}

func newImportMoonshotCommand() *cobra.Command {
	m := &moonshotImport{}
	cmd := &cobra.Command{
		Use:   "moonshot {NAME... -c CONFIG | --chassis [NAME=]ADDRESS... --pool POOL}",
		Short: "Nodes of HPE Moonshot chassis",
		Long: `Moonshot asks the managers of Moonshot chassis which nodes they hold: one SSH
connection and one login each, "show node list" and "show node macaddr all"; or
REST (--via rest), where the firmware tells MACs that way. It reads the same from
a file that somebody pasted from a terminal (--from-file), and then asks nobody.
Chassis of the config file are named; how they are asked and what becomes of
their nodes is then said there.

Nodes are named by chassis and slot. The templates know .Chassis, .Cartridge,
.Node and .Slot, and can add and mul numbers. A new node needs an address before
a server takes it: --ip-template gives one, or fill it in.

A host key is pinned when it is first seen; a changed one is refused. A wrong
password is tried once.`,
		Example: `  drover import moonshot --chassis m1=10.1.0.1 --chassis m2=10.1.0.2 --legacy --password-file ilo.pass \
    --pool compute --ip-template '10.28.{{add 36 .Cartridge}}.{{.Node}}'
  drover import moonshot m1 m2 -c drover.yaml --apply
  drover import moonshot --from-file m1=m1.txt --pool compute -c drover.yaml --dry-run
  drover import moonshot --chassis m1=10.1.0.1 --pool compute --nodes c1-c9,c12n1 --apply`,
		DisableFlagsInUseLine: true,
		RunE:                  func(cmd *cobra.Command, names []string) error { return m.run(cmd, names) },
	}
	f := cmd.Flags()
	f.StringArrayVar(&m.chassis, "chassis", nil, "[NAME=]ADDRESS of a chassis manager; once for each")
	f.StringVar(&m.fromFile, "from-file", "", "[NAME=]FILE with what a chassis said, - for standard input; asks nobody")
	f.StringVar(&m.via, "via", "auto", "auto|ssh|rest")
	f.StringVar(&m.nodes, "nodes", "all", "which nodes: c1n1,c3,5-9")
	f.StringVar(&m.save, "save-transcript", "", "directory to keep what the chassis said in, as NAME.txt, without secrets")
	f.StringVar(&m.naming.Name, "name-template", pools.DefaultBayName, "name of a node")
	f.StringVar(&m.naming.IP, "ip-template", "", "address of a node; default: new nodes have none, others keep theirs")
	f.StringVar(&m.naming.NIC, "nic", "all", "which network cards: all, a number, or a switch, A or B")
	f.BoolVar(&m.options.Force, "force", false, "take a chassis that has lost more than half of its nodes")
	f.BoolVar(&m.options.Prune, "prune", false, "mark nodes that are gone: they are ignored from then on")
	m.bmc.add(cmd, true)
	m.add(cmd)
	_ = cmd.RegisterFlagCompletionFunc("via", cobra.FixedCompletions([]string{"auto", "ssh", "rest"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// importArgs refuses words behind the flags.
func importArgs(cmd *cobra.Command, args []string) error {
	if err := cobra.NoArgs(cmd, args); err != nil {
		return usage(err)
	}
	return nil
}

// source is a chassis to read, and what was read.
type source struct {
	at    chassisAt
	file  string
	bmc   bmcFlags // of one that the config names
	named bool
	which ilo.Selection
	namer *ilo.Namer

	inv        *ilo.Inventory
	transcript string
	err        error
}

func (m *moonshotImport) run(cmd *cobra.Command, names []string) error {
	sources, err := m.sources(cmd, names)
	if err != nil {
		return usage(err)
	}
	say := func(format string, args ...any) { fmt.Fprintf(cmd.ErrOrStderr(), "drover: "+format+"\n", args...) }
	if m.fromFile != "" {
		m.readFile(cmd.InOrStdin(), sources[0])
	} else {
		logins, err := m.logins(sources, say)
		if err != nil {
			return usage(err)
		}
		inParallel(cmd.Context(), len(sources), m.bmc.parallel, func(ctx context.Context, i int) { m.ask(ctx, logins[i], sources[i]) })
		if err := m.keep(logins, sources); err != nil {
			return usage(err)
		}
	}
	var out outcome
	stored, err := m.open(cmd.Context())
	if err != nil {
		return &exitError{importCode(err), err}
	}
	for _, s := range sources {
		m.one(cmd, s, stored, &out)
	}
	if err := stored.finish(cmd); err != nil {
		return usage(err)
	}
	return out.err()
}

// logins opens what the flags say, or for chassis of the config what that says.
// All share one file of pins.
func (m *moonshotImport) logins(sources []*source, say func(format string, args ...any)) (out []*bmcs, err error) {
	var shared *bmcs
	for _, s := range sources {
		if shared != nil && !s.named {
			out = append(out, shared)
			continue
		}
		b, err := s.bmc.open(say)
		if err != nil {
			return nil, fmt.Errorf("chassis %s: %w", s.at.name, err)
		}
		if shared == nil {
			shared = b
		}
		b.hosts, b.certs = shared.hosts, shared.certs
		out = append(out, b)
	}
	return out, nil
}

// one compares and writes one chassis.
func (m *moonshotImport) one(cmd *cobra.Command, s *source, stored *importStore, out *outcome) {
	if s.err != nil {
		out.fail(s.at.name, s.err)
		return
	}
	o := m.options
	o.Select = s.which
	s.inv.Choose(o.Select)
	changes, err := s.namer.Compare(s.inv, stored.known(), o)
	if err == nil {
		err = stored.write(cmd, s.at.name, changes, notes(s.inv))
	}
	if err != nil {
		out.fail(s.at.name, err)
		return
	}
	out.done++
	out.note(changes)
}

// notes are the warnings of an inventory, and problems that are of no slot.
func notes(inv *ilo.Inventory) []string {
	var out []string
	for _, n := range append(inv.Problems, inv.Warnings...) {
		out = append(out, n.String())
	}
	return out
}

// maxTranscript bounds a file; what is in it is bounded by ilo.Parse.
const maxTranscript = 4 << 20

func (m *moonshotImport) readFile(stdin io.Reader, s *source) {
	in := stdin
	if s.file != "-" {
		f, err := os.Open(s.file)
		if err != nil {
			s.err = usage(err)
			return
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, maxTranscript))
	if err != nil {
		s.err = err
		return
	}
	if s.inv, s.err = ilo.Parse(string(data)); s.err != nil {
		s.err = fmt.Errorf("%s: %w", s.file, s.err)
	}
}

// ask reads one chassis. Over SSH first; a chassis may be asked over REST
// instead, but not after a login was refused.
func (m *moonshotImport) ask(ctx context.Context, b *bmcs, s *source) {
	if s.at.via(m.via) == "ssh" {
		s.inv, s.transcript, s.err = ilo.Scrape(ctx, b.login(s.at.address))
		return
	}
	site, err := b.site(s.at.address)
	if err != nil {
		s.err = usage(err)
		return
	}
	defer site.Close()
	s.inv, s.err = ilo.ScrapeREST(ctx, site)
}

// keep writes what the chassis said into a directory, for a bug report. The
// password and the address of the manager are taken out.
func (m *moonshotImport) keep(logins []*bmcs, sources []*source) error {
	if m.save == "" {
		return nil
	}
	if err := os.MkdirAll(m.save, 0o700); err != nil {
		return fmt.Errorf("--save-transcript: %w", err)
	}
	var errs []error
	for i, s := range sources {
		if s.transcript == "" {
			continue
		}
		host, _, _ := strings.Cut(s.at.address, ":")
		text := s.transcript
		for _, secret := range []string{string(logins[i].password), s.at.address, host} {
			if secret != "" {
				text = strings.ReplaceAll(text, secret, "[removed]")
			}
		}
		errs = append(errs, os.WriteFile(filepath.Join(m.save, s.at.name+".txt"), []byte(text), 0o600))
	}
	return errors.Join(errs...)
}
