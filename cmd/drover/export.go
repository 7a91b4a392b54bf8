package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/pools"
	"drover/pools/atomicfile"
	"drover/pools/config"
	"drover/pools/config/decode"
	"drover/pools/config/include"
	"drover/pools/config/objects"
	"drover/pools/resolve"
)

// maxManifests bounds a file of objects, in bytes.
const maxManifests = 64 << 20

func newExportCommand() *cobra.Command {
	var file, format, namespace string
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Print the farm of a config as objects for kubectl apply",
		Long: `Export prints the subnets, tags, clusters, pools, nodes and chassis of a config as
objects of drover.dev, for kubectl apply or a git repository. The section server
stays in the config. What cannot be an object, as it names a program or a file of
the server, is left out with a warning (exit code 3). The way back is drover apply.`,
		Example: "  drover export -c drover.yaml > farm.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if format != "objects" {
				return &cli.Error{Code: cli.Usage, Err: fmt.Errorf("--format %q: want objects", format)}
			}
			return export(file, namespace, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cli.ConfigFlag(cmd, &file)
	cmd.Flags().StringVar(&format, "format", "objects", "objects: YAML documents for kubectl")
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "drover", "namespace of the objects")
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
	all, left := objects.FromConfig(&cfg)
	if err := objects.Write(stdout, namespace, all); err != nil {
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
	var file, manifests string
	var dryRun bool
	var output cli.Output
	cmd := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Put objects into a config file",
		Long: `Apply adds the objects of a file, as drover export prints them, to a config file. It
replaces the elements of the same names, and keeps all others, their order and the
comments. The result is checked as drover check does before it is written. What stands
in files that the config includes is not replaced: drover names it as there twice.

Objects of an admin cluster are applied by kubectl.`,
		Example: "  drover apply -f farm.yaml -c drover.yaml --dry-run\n  drover apply -f farm.yaml -c drover.yaml -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if manifests == "" {
				return &cli.Error{Code: cli.Usage, Err: errors.New("-f FILE is needed: the objects")}
			}
			n, err := applyObjects(manifests, file, dryRun, cmd.OutOrStdout(), cmd.ErrOrStderr())
			if err != nil || dryRun {
				return err
			}
			return output.Print(cmd, map[string]any{"file": file, "objects": n}, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%s: %d objects applied\n", file, n)
				return err
			})
		},
	}
	cli.ConfigFlag(cmd, &file)
	cmd.Flags().StringVarP(&manifests, "filename", "f", "", "file with the objects")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print the config in place of writing it")
	output.Flag(cmd, "text", "json", "yaml")
	return cmd
}

// applyObjects returns the number of objects.
func applyObjects(manifests, file string, dryRun bool, stdout, stderr io.Writer) (n int, err error) {
	data, err := atomicfile.Read(manifests, maxManifests)
	if err != nil {
		return 0, err
	}
	all, err := objects.Read(manifests, data)
	if err != nil {
		return 0, cli.PrintMistakes(manifests, err, stderr)
	}
	info, err := os.Stat(file)
	if err != nil {
		return 0, err
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
	if err := atomicfile.Write(file, after, info.Mode().Perm()); err != nil {
		return 0, err
	}
	return len(all), nil
}
