package main

import (
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/cmd/drover/server"
	"drover/cmd/drover/server/readiness"
	"drover/pools"
	"drover/pools/resolve"
)

func newCheckCommand() *cobra.Command {
	var config string
	var live bool
	c := &cli.Client{}
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check a config and report every mistake",
		Long: `Check reads a config as drover serve does, and reports every mistake at once,
each with file, line and a hint. It warns of kubeconfigs and files that this host does not
have, and of a kernel whose neighbor table is too small for the farm. It starts and changes
nothing.

With --live it also compares the config with the nodes that were added over the API of the
running server, whose names, MACs and addresses the config must leave alone.`,
		Example: "  drover check -c drover.yaml\n  drover check -c drover.yaml --live",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var added []pools.PoolNode
			if live {
				var err error
				if added, err = c.AddedNodes(cmd.Context()); err != nil {
					return err
				}
			}
			return check(config, added, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cli.ConfigFlag(cmd, &config)
	c.Flags(cmd)
	cmd.Flags().BoolVar(&live, "live", false, "also compare with the nodes that were added over the API of the running server")
	return cmd
}

func check(file string, added []pools.PoolNode, stdout, stderr io.Writer) error {
	farm, err := cli.LoadConfig(file, stderr, added...)
	if err != nil {
		return err
	}
	if _, err := server.LoadTemplates(farm); err != nil {
		return err
	}
	for _, c := range farm.Clusters() {
		if c.Kubeconfig == "" { // the kubeconfig is in a Secret of the admin cluster
			continue
		}
		if _, err := os.Stat(c.Kubeconfig); err != nil {
			fmt.Fprintf(stderr, "warning: cluster %q: %v: its nodes will boot but not join\n", c.Name, err)
		}
	}
	for _, w := range readiness.NeighborWarnings(farm, os.DirFS("/proc")) {
		fmt.Fprintln(stderr, "warning:", w)
	}
	warnAddresses(farm, stderr)
	warnReferences(farm, stderr)
	for _, n := range farm.Shadowed() {
		fmt.Fprintf(stderr, "warning: node %q of %s is left out: the config declares its name, a MAC, its address or its place\n", n.Name, n.ChassisSlot)
	}
	fmt.Fprintf(stdout, "%s: ok: %d pools, %d nodes, %d clusters, %d tags\n", file,
		len(farm.Config.Pools), len(farm.Nodes()), len(farm.Config.Clusters), len(farm.Config.Tags))
	return nil
}

// warnReferences warns about files that settings refer to and that cannot be read.
func warnReferences(farm *resolve.Farm, stderr io.Writer) {
	for _, name := range slices.Sorted(maps.Keys(farm.Config.Tags)) {
		t := farm.Config.Tags[name]
		refs := t.References()
		for _, field := range slices.Sorted(maps.Keys(refs)) {
			if refs[field].FromFile == "" {
				continue
			}
			if _, err := server.ReadFile(farm, refs[field].FromFile); err != nil {
				fmt.Fprintf(stderr, "warning: tag %q: %s: fromFile: %v: its nodes do not boot until it is there\n", name, field, err)
			}
		}
	}
}

// warnAddresses warns about subnets whose nodes cannot reach their boot address.
func warnAddresses(farm *resolve.Farm, stderr io.Writer) {
	listener, _, _ := net.SplitHostPort(farm.Config.Server.HTTP)
	only, _ := netip.ParseAddr(listener) // the zero Addr: all addresses
	for i, s := range farm.Config.Subnets {
		address, from := farm.BootAddress(i)
		switch {
		case !address.IsValid():
			fmt.Fprintf(stderr, "warning: subnet %s: no boot address is known here: set address: in the subnet or in server, unless the server's interface has one\n", s.CIDR)
		case only.IsValid() && only != address && (!only.IsUnspecified() || only.Is4() && s.Is6()):
			fmt.Fprintf(stderr, "warning: subnet %s: its nodes boot from %s (%s), but server.http listens on %s alone\n", s.CIDR, address, from, only)
		case !s.CIDR.Contains(address) && !s.Router.IsValid() && !s.Is6():
			fmt.Fprintf(stderr, "warning: subnet %s: its nodes boot from %s (%s) in another network, and have no router: set router: or address:\n", s.CIDR, address, from)
		}
	}
}
