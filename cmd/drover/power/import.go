package power

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/hardware/importer"
	"drover/internal/printable"
	"drover/pools"
)

func newImportCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import",
		Short: "Read nodes from the hardware, or from the config of another server",
		Long: `Import reads machines from the hardware (moonshot, ilo), or from the config of
another server, and makes nodes of them: as YAML for the config file, or over the
REST API of a running server (--apply).

It adds and changes nodes, and deletes none. Chassis and slot identify a node: it
stays the same node when its cartridge is exchanged.

Exit codes: 0 done, 1 failed (not understood, or most of a chassis is missing),
2 usage, 3 partly done (a node without a MAC or in conflict, one of several chassis
that failed, ranges or passwords left out), 4 unreachable, 5 login refused.`,
	}
	return cli.Group(cmd, append(newImportConfigCommands(), newImportMoonshotCommand(), newImportILOCommand())...)
}

func newImportMoonshotCommand() *cobra.Command {
	m, flags := &importer.Moonshot{}, &importFlags{}
	cmd := &cobra.Command{
		Use:   "moonshot {NAME... -c CONFIG | --chassis [NAME=]ADDRESS... --pool POOL}",
		Short: "Nodes of HPE Moonshot chassis",
		Long: `Moonshot reads the nodes of Moonshot chassis from their managers: one SSH
connection and one login each, "show node list" and "show node macaddr all"; or
REST (--via rest), if the firmware shows MACs there. With --from-file it reads
text that was copied from a terminal, and connects to nothing. NAME is a chassis
of the config file, which then has the login and the pool.

Nodes are named after chassis and slot. Templates have .Chassis, .Cartridge, .Node
and .Slot, and the functions add and mul. A server accepts a new node only with an
address: --ip-template gives one, or fill it in.

The first host key is pinned, and a changed one is refused. A wrong password is
tried once.`,
		Example: `  drover import moonshot --chassis m1=10.1.0.1 --legacy --password-file ilo.pass \
    --pool compute --ip-template '10.28.{{add 36 .Cartridge}}.{{.Node}}'
  drover import moonshot m1 m2 -c drover.yaml --apply
  drover import moonshot --from-file m1=m1.txt --pool compute -c drover.yaml --dry-run
  drover import moonshot --chassis m1=10.1.0.1 --pool compute --nodes c1-c9,c12n1 --apply`,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, names []string) error {
			if err := flags.checkNames(cmd, m, names); err != nil {
				return &cli.Error{Code: cli.Usage, Err: err}
			}
			m.Stdin, m.API = cmd.InOrStdin(), &flags.api
			m.Parallel, m.Base, m.Login = flags.bmc.parallel, flags.bmc.base(cmd), flags.bmc.login(cmd)
			return flags.run(cmd, m.Run)
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&m.Chassis, "chassis", nil, "[NAME=]ADDRESS of a chassis manager; once for each")
	f.StringVar(&m.FromFile, "from-file", "", "[NAME=]FILE with what a chassis said, - for standard input; asks nobody")
	f.StringVar(&m.Via, "via", "auto", "auto|ssh|rest")
	f.StringVar(&m.Nodes, "nodes", "all", "which nodes: c1n1,c3,5-9")
	f.StringVar(&m.SaveDir, "save-transcript", "", "directory to keep what the chassis said in, as NAME.txt, without secrets")
	f.StringVar(&m.Template.NameTemplate, "name-template", pools.DefaultNodeName, "name of a node")
	f.StringVar(&m.Template.IPTemplate, "ip-template", "", "address of a node; default: new nodes have none, others keep theirs")
	f.StringVar(&m.Template.NIC, "nic", "all", "which network cards: all, a number, or a switch, A or B")
	f.BoolVar(&m.Options.Force, "force", false, "take a chassis that has lost more than half of its nodes")
	f.BoolVar(&m.Options.Prune, "prune", false, "mark nodes that are gone: they are ignored from then on")
	flags.add(cmd, &m.Target, true)
	_ = cmd.RegisterFlagCompletionFunc("via", cobra.FixedCompletions([]string{"auto", "ssh", "rest"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func newImportILOCommand() *cobra.Command {
	m, flags := &importer.ILO{}, &importFlags{}
	cmd := &cobra.Command{
		Use:   "ilo --hosts ADDRESSES --pool POOL",
		Short: "Nodes of servers with an iLO of their own",
		Long: `Ilo reads the serial number and the MACs of servers from their iLOs. iLO 4 and
later show them to anyone at /xmldata, unless that is switched off; Redfish (--via
redfish) needs a login. The MACs of the iLOs themselves are never imported.
Addresses in a range that do not answer are left out.

A node is named after the serial number, or by --name-template, which has .Serial,
.UUID and .Host.`,
		Example: `  drover import ilo --hosts 10.0.0.0/24 --pool compute
  drover import ilo --hosts ilo-a1,ilo-a2 --via redfish --password-file ilo.pass --pool compute --apply`,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := cobra.NoArgs(cmd, args); err != nil {
				return &cli.Error{Code: cli.Usage, Err: err}
			}
			return nil
		},
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			m.API = &flags.api
			m.Parallel, m.Base, m.Login = flags.bmc.parallel, flags.bmc.base(cmd), flags.bmc.login(cmd)
			return flags.run(cmd, m.Run)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&m.Hosts, "hosts", nil, "addresses, names, networks such as 10.0.0.0/24, or ranges such as 10.0.0.5-10.0.0.9")
	f.StringVar(&m.Via, "via", "auto", "auto|xmldata|redfish; auto asks xmldata first")
	f.StringVar(&m.Name, "name-template", "{{.Serial}}", "name of a node, made lower case")
	flags.add(cmd, &m.Target, false)
	_ = cmd.RegisterFlagCompletionFunc("via", cobra.FixedCompletions([]string{"auto", "xmldata", "redfish"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// importFlags are the flags that all imports share.
type importFlags struct {
	target *importer.Target
	bmc    bmcFlags
	diff   bool
	format string
	api    cli.Client
}

func (i *importFlags) add(cmd *cobra.Command, t *importer.Target, ssh bool) {
	i.target = t
	i.bmc.add(cmd, ssh)
	f := cmd.Flags()
	f.StringVar(&t.Pool, "pool", "", "pool of new nodes")
	f.StringArrayVar(&t.Tags, "tag", nil, "tag of the nodes, after those of the pool; once for each")
	f.StringVarP(&t.Config, "config", "c", "", "compare with the nodes of this config file")
	f.StringVar(&t.Output, "output", "", "write the nodes as YAML to this file, and compare with what is in it; default: standard output")
	f.BoolVar(&t.Apply, "apply", false, "write the nodes to the running server, all of a chassis or none")
	f.BoolVar(&t.DryRun, "dry-run", false, "only show what would change")
	f.BoolVar(&i.diff, "diff", false, "show what changes, also when the nodes are written")
	f.StringVarP(&i.format, "format", "o", "text", "how changes are shown: text|json|yaml")
	i.api.Flags(cmd)
	_ = cmd.MarkFlagFilename("config", "yaml", "yml")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
}

// checkNames sets the names of chassis of the config file, and rejects the flags
// for which the config has a field.
func (i *importFlags) checkNames(cmd *cobra.Command, m *importer.Moonshot, names []string) error {
	if m.Names = names; len(names) == 0 {
		if len(m.Chassis) > 1 && (i.bmc.to.HostKey != "" || i.bmc.to.TLSPin != "") {
			return errors.New("--host-key and --tls-pin are for one --chassis: each has its own (leave them out to pin at first use)")
		}
		return nil
	}
	for _, name := range []string{
		"chassis", "from-file", "via", "nodes", "name-template", "ip-template", "nic", "pool", "tag",
		"user", "password-file", "legacy", "tls-pin", "host-key", "prompt",
	} {
		if cmd.Flags().Changed(name) {
			return fmt.Errorf("--%s: of a chassis that is named, the config file says it", name)
		}
	}
	m.Config = cmp.Or(m.Config, cli.DefaultConfig)
	return nil
}

// run runs an import and prints its result.
func (i *importFlags) run(cmd *cobra.Command, do func(context.Context) (*importer.Result, error)) error {
	if i.format != "text" && i.format != "json" && i.format != "yaml" {
		return &cli.Error{Code: cli.Usage, Err: fmt.Errorf("unknown output %q (text, json or yaml)", i.format)}
	}
	r, err := do(cmd.Context())
	if err == nil {
		err = i.print(cmd, r)
	}
	if err == nil {
		err = r.WriteNodes(cmd.OutOrStdout())
	}
	if err != nil {
		return powerError(err)
	}
	return importOutcome(r)
}

// print prints the reports: notes to standard error, changes to standard output
// unless that is for the nodes.
func (i *importFlags) print(cmd *cobra.Command, r *importer.Result) error {
	t, out := i.target, cmd.OutOrStdout()
	if !t.Apply && !t.DryRun && t.Output == "" {
		out = cmd.ErrOrStderr()
	}
	for _, report := range r.Reports {
		for _, n := range report.Notes {
			cli.Note(cmd.ErrOrStderr(), report.Chassis, n)
		}
	}
	changes := i.diff || t.DryRun || t.Apply
	if i.format != "text" && changes {
		return cli.Print(out, r.Reports, i.format)
	}
	for _, report := range r.Reports {
		if changes {
			for _, c := range report.Changes {
				fmt.Fprintln(out, printable.Text(c.String()))
			}
		}
		fmt.Fprintln(out, report.Summary())
	}
	return nil
}

// importOutcome returns the error of an import that was printed.
func importOutcome(r *importer.Result) error {
	switch {
	case len(r.Failed) > 0 && r.Done == 0:
		return &cli.Error{Code: cli.CodeOf(powerError(r.Failed[0])), Err: errors.Join(r.Failed...)}
	case len(r.Failed) > 0:
		return &cli.Error{Code: cli.Partly, Err: errors.Join(r.Failed...)}
	case r.Conflicts > 0:
		return &cli.Error{Code: cli.Partly, Err: fmt.Errorf("nodes in conflict, left as they were: %d", r.Conflicts)}
	case r.Partial:
		return &cli.Error{Code: cli.Partly, Err: errors.New("some nodes have no MAC yet, or were not understood (switch them on once, and import again)")}
	}
	return nil
}
