package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/cmd/drover/node"
	"drover/internal/atomicfile"
	"drover/migrate/nodefile"
	"drover/pools"
	"drover/pools/config"
	"drover/pools/config/declared"
	"drover/pools/config/decode"
	"drover/pools/config/include"
	"drover/pools/resolve"
)

// maxManifests bounds a file of objects, in bytes.
const maxManifests = 64 << 20

func newExportCommand() *cobra.Command {
	var file, format, namespace string
	var rules []string
	c := &cli.Client{}
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Print the farm of a config as objects, or the nodes of a running server",
		Long: `Export prints the subnets, tags, clusters, pools, nodes and chassis of a config as
objects of drover.dev, for kubectl apply or a git repository. The section server
stays in the config. What cannot be an object, as it names a program or a file of
the server, is left out with a warning (exit code 3).

With --format nodes or csv it prints the nodes that were added to a running server, as a
list in YAML or as a table. The table has no match, dhcpOptions, lease and place of nodes:
where there are some, the exit code is 3.

The way back is drover apply.`,
		Example: `  drover export -c drover.yaml > farm.yaml
  drover export --format nodes > nodes.yaml
  drover export --format csv -l pool=compute > nodes.csv`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f := cmd.Flags()
			switch {
			case format == "nodes" || format == "csv":
				if f.Changed("config") || f.Changed("namespace") {
					return &cli.Error{Code: cli.Usage, Err: fmt.Errorf("--format %s: nodes are those of the running server: give neither --config nor --namespace", format)}
				}
				return node.Export(cmd, c, rules, format)
			case format != "objects":
				return &cli.Error{Code: cli.Usage, Err: fmt.Errorf("--format %q: want objects, nodes or csv", format)}
			case len(rules) > 0:
				return &cli.Error{Code: cli.Usage, Err: errors.New("--selector is for --format nodes and csv")}
			}
			return export(file, namespace, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cli.ConfigFlag(cmd, &file)
	cmd.Flags().StringVar(&format, "format", "objects", "objects: YAML documents for kubectl; nodes, csv: nodes of the running server")
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "drover", "namespace of the objects")
	node.RulesFlag(cmd, &rules, "of nodes: rules such as pool=compute,tag=storage")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"objects", "nodes", "csv"}, cobra.ShellCompDirectiveNoFileComp))
	c.Flags(cmd)
	return cmd
}

func export(file, namespace string, stdout, stderr io.Writer) error {
	if _, err := cli.LoadConfig(file, stderr); err != nil { // with all of its checks
		return err
	}
	text, err := include.Read(file)
	if err != nil {
		return err
	}
	var c resolve.Checked
	if errs := text.Decode(&c); len(errs) > 0 { // without defaults
		return errs.Err()
	}
	cfg := c.Config
	all, left := declared.FromConfig(&cfg)
	if err := declared.Write(stdout, namespace, all); err != nil {
		return err
	}
	for _, e := range left {
		fmt.Fprintln(stderr, "warning: left out:", e)
	}
	warnOrder(&cfg, stderr)
	if len(left) > 0 {
		return &cli.Error{Code: cli.Partly, Err: fmt.Errorf("%d elements of %s stay in the config", len(left), file)}
	}
	return nil
}

// warnOrder warns when the order of catch-all pools, which is theirs in the file and by name
// as objects, is another.
func warnOrder(cfg *pools.Config, stderr io.Writer) {
	before := ""
	for _, p := range cfg.Pools {
		if !p.CatchAll {
			continue
		}
		if p.Name < before {
			fmt.Fprintf(stderr, "warning: catch-all pools are asked in the order of their names: %q comes before %q as an object\n", p.Name, before)
		}
		before = p.Name
	}
}

func newApplyCommand() *cobra.Command {
	var config, file string
	nodes := &node.Apply{}
	cmd := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Make the nodes of a running server those of a file, or put objects into a config",
		Long: `Apply of a file of nodes adds and changes nodes of the running server, all in one step. It
shows what changes, and asks. The file is a list in YAML or JSON, whose entries are whole
nodes, or a table (.csv, .tsv), which changes only the fields that it has columns for: name,
pool, macs, ip, ip6, tags, ignore. drover export --format nodes or csv prints such files.
With --prune nodes that the file does not have go, in the pools that it names or, with
--selector, those that the rules choose. Nodes of the config file and of chassis stay.

Apply of objects, as drover export prints them, puts them into a config file. It
replaces the elements of the same names, and keeps all others, their order and the
comments. The result is checked as drover check does before it is written. What stands
in files that the config includes is not replaced: drover names it as there twice.

Objects of an admin cluster are applied by kubectl. The flags of nodes and of objects are
marked: a file takes those of its kind.`,
		Example: `  drover apply -f nodes.yaml
  drover apply -f nodes.csv --prune --dry-run
  drover apply -f nodes.yaml --prune -l pool=compute,tag=gpu -y
  drover apply -f farm.yaml -c drover.yaml --dry-run`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				return &cli.Error{Code: cli.Usage, Err: errors.New("-f FILE is needed: the nodes or the objects")}
			}
			data, err := atomicfile.Read(file, maxManifests)
			if err != nil {
				return err
			}
			list, err := nodefile.IsList(file, data)
			switch isTable := nodefile.IsTable(file); {
			case err != nil && !isTable:
				return cli.PrintMistakes(file, err, cmd.ErrOrStderr())
			case isTable || list:
				if cmd.Flags().Changed("config") {
					return &cli.Error{Code: cli.Usage, Err: fmt.Errorf("%s has nodes, which go to the running server: --config is for objects (to put nodes into a config, edit it, or see drover import)", file)}
				}
				return nodes.Run(cmd, file, data)
			case bytes.Contains(data, []byte("apiVersion")) || bytes.Contains(data, []byte("kind")): // whatever its mistakes
				return putObjects(cmd, nodes, file, data, config)
			}
			return &cli.Error{Code: cli.Usage, Err: fmt.Errorf("%s: neither nodes (YAML with \"nodes: [{pool: web, name: m1, macs: [...], ip: ...}]\", or a table NAME.csv) nor objects of drover.dev (with apiVersion and kind)", file)}
		},
	}
	cli.ConfigFlag(cmd, &config)
	cmd.Flags().StringVarP(&file, "filename", "f", "", "file with the nodes or the objects")
	nodes.Flags(cmd)
	cmd.Flags().Lookup("config").Usage = "objects: the config file that they go to"
	cmd.Flags().Lookup("dry-run").Usage = "show what would change, or print the config, and change nothing"
	return cmd
}

// putObjects puts the objects of a file into a config.
func putObjects(cmd *cobra.Command, flags *node.Apply, file string, data []byte, config string) error {
	if err := flags.OnlyNodes(cmd); err != nil {
		return err
	}
	n, err := applyObjects(file, data, config, flags.DryRun(), cmd.OutOrStdout(), cmd.ErrOrStderr())
	if err != nil || flags.DryRun() {
		return err
	}
	return flags.Output().PrintNamed(cmd, map[string]any{"file": config, "objects": n}, []string{config}, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s: %d objects applied\n", config, n)
		return err
	})
}

// applyObjects returns the number of objects.
func applyObjects(manifests string, data []byte, file string, dryRun bool, stdout, stderr io.Writer) (n int, err error) {
	all, err := declared.Read(manifests, data)
	if err != nil {
		return 0, cli.PrintMistakes(manifests, err, stderr)
	}
	before, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	elements := make([]decode.Element, len(all))
	for i, o := range all {
		elements[i] = o.Element()
	}
	after, err := decode.Edit(file, before, elements)
	if err != nil {
		return 0, err
	}
	_, err = config.ParseText(&include.Text{File: file, Main: after})
	if dryRun {
		if _, err := stdout.Write(after); err != nil {
			return 0, err
		}
	}
	if err != nil { // its lines are those that --dry-run prints
		return 0, cli.PrintMistakes(file, err, stderr)
	}
	if dryRun {
		return len(all), nil
	}
	if err := atomicfile.Rewrite(file, after, 0o600); err != nil {
		return 0, err
	}
	return len(all), nil
}
