package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/pools"
	"drover/pools/config"
	"drover/pools/config/mistake"
	"drover/pools/resolve"
	"drover/server"
	"drover/server/readiness"
)

// checked is what a check has found.
type checked struct {
	File     string        `json:"file"`
	OK       bool          `json:"ok"`
	Mistakes []mistakeLine `json:"mistakes"`
	Warnings []string      `json:"warnings"`
	Pools    int           `json:"pools"`
	Nodes    int           `json:"nodes"`
	Clusters int           `json:"clusters"`
	Tags     int           `json:"tags"`
}

// mistakeLine is a mistake of a config file.
type mistakeLine struct {
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Text   string `json:"text"`
	Remedy string `json:"remedy,omitempty"`
}

func newCheckCommand() *cobra.Command {
	var file, images string
	var live bool
	var output cli.Output
	c := &cli.Client{}
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check a config and report every mistake",
		Long: `Check reads a config as drover serve does, and reports every mistake at once,
each with file, line and a hint. It warns of kubeconfigs and files that this host does not
have, of pools whose image or channel is not there, if there is a directory of images, and of a kernel
whose neighbor table is too small for the farm. It starts and changes nothing.

With --live it also compares the config with the nodes that were added over the API of the
running server, whose names, MACs and addresses the config must leave alone.`,
		Example: "  drover check -c drover.yaml\n  drover check -c drover.yaml --live\n  drover check -c drover.yaml -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var added []pools.PoolNode
			if live {
				var err error
				if added, err = c.AddedNodes(cmd.Context()); err != nil {
					return err
				}
			}
			found := checked{File: file, Mistakes: []mistakeLine{}, Warnings: []string{}}
			err := found.check(added, images, func() (channels, error) { return askChannels(cmd.Context(), c) })
			if output.Format() != "text" {
				return errors.Join(output.Print(cmd, found, nil), cli.PrintMistakes(file, err, io.Discard))
			}
			for _, w := range found.Warnings {
				fmt.Fprintln(cmd.ErrOrStderr(), "warning:", w)
			}
			if err != nil {
				return cli.PrintMistakes(file, err, cmd.ErrOrStderr())
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: ok: %d pools, %d nodes, %d clusters, %d tags\n", file, found.Pools, found.Nodes, found.Clusters, found.Tags)
			return nil
		},
	}
	cli.ConfigFlag(cmd, &file)
	c.Flags(cmd)
	output.Flag(cmd, "text", "json", "yaml")
	cmd.Flags().StringVar(&images, "images", cli.DefaultState+"/images", "directory of images")
	_ = cmd.MarkFlagDirname("images")
	cmd.Flags().BoolVar(&live, "live", false, "also compare with the nodes that were added over the API of the running server")
	cli.OnHost(cmd, "give a file with -c", "config")
	return cmd
}

// check fills in what it finds, with a directory of images and the channels of the running server. Its
// error has the mistakes.
func (k *checked) check(added []pools.PoolNode, images string, ask func() (channels, error)) error {
	farm, err := config.Load(k.File, added...)
	if err == nil {
		_, err = server.LoadTemplates(farm)
	}
	if err != nil {
		mistakes, ok := errors.AsType[mistake.Errors](err)
		for _, m := range mistakes {
			k.Mistakes = append(k.Mistakes, mistakeLine{m.File, m.Line, m.Msg, m.Hint})
		}
		if !ok {
			k.Mistakes = append(k.Mistakes, mistakeLine{File: k.File, Text: err.Error()})
		}
		return err
	}
	for _, c := range farm.Clusters() {
		if c.Kubeconfig == "" { // the kubeconfig is in a Secret of the admin cluster
			continue
		}
		if _, err := os.Stat(c.Kubeconfig); err != nil {
			k.warn("cluster %q: %v: its nodes will boot but not join: drover cluster prepare %s --write %s makes it", c.Name, err, c.Name, c.Kubeconfig)
		}
	}
	k.Warnings = append(k.Warnings, readiness.NeighborWarnings(farm, os.DirFS("/proc"))...)
	k.warnAddresses(farm)
	k.warnReferences(farm)
	k.warnImages(farm, images, ask)
	for _, n := range farm.Shadowed() {
		k.warn("node %q of %s is left out: the config declares its name, a MAC, its address or its place", n.Name, n.ChassisSlot)
	}
	for _, n := range farm.Waiting() {
		k.warn("node %q of the API is left out: its pool %q, its subnet or a tag is not in the config, and is looked for in the objects of the admin cluster", n.Name, n.Pool)
	}
	k.OK, k.Pools, k.Nodes, k.Clusters, k.Tags = true, len(farm.Config.Pools), len(farm.Nodes()), len(farm.Config.Clusters), len(farm.Config.Tags)
	return nil
}

func (k *checked) warn(format string, args ...any) {
	k.Warnings = append(k.Warnings, fmt.Sprintf(format, args...))
}

// warnReferences warns about files that settings refer to and that cannot be read.
func (k *checked) warnReferences(farm *resolve.Farm) {
	for _, name := range slices.Sorted(maps.Keys(farm.Config.Tags)) {
		t := farm.Config.Tags[name]
		refs := t.References()
		for _, field := range slices.Sorted(maps.Keys(refs)) {
			if refs[field].FromFile == "" {
				continue
			}
			if _, err := server.ReadFile(farm, refs[field].FromFile); err != nil {
				k.warn("tag %q: %s: fromFile: %v: its nodes do not boot until it is there", name, field, err)
			}
		}
	}
}

// warnAddresses warns about subnets whose nodes cannot reach their boot address.
func (k *checked) warnAddresses(farm *resolve.Farm) {
	listener, _, _ := net.SplitHostPort(farm.Config.Server.HTTP)
	only, _ := netip.ParseAddr(listener) // the zero Addr: all addresses
	for i, s := range farm.Config.Subnets {
		address, from := farm.BootAddress(i)
		switch {
		case !address.IsValid():
			k.warn("subnet %s: no boot address is known here: set address: in the subnet or in server, unless the server's interface has one", s.CIDR)
		case only.IsValid() && only != address && (!only.IsUnspecified() || only.Is4() && s.Is6()):
			k.warn("subnet %s: its nodes boot from %s (%s), but server.http listens on %s alone", s.CIDR, address, from, only)
		case !s.CIDR.Contains(address) && !s.Router.IsValid() && !s.Is6():
			k.warn("subnet %s: its nodes boot from %s (%s) in another network, and have no router: set router: or address:", s.CIDR, address, from)
		}
	}
}
