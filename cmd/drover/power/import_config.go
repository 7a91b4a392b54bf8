package power

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/internal/printable"
	"drover/migrate"
	"drover/migrate/dhcpd"
	"drover/migrate/dnsmasq"
	"drover/migrate/inventory"
	"drover/migrate/kea"
	"drover/migrate/kubefarm"
	"drover/migrate/matchbox"
	"drover/migrate/warewulf"
	"drover/pools"
)

// newImportConfigCommands returns the imports from the configs of other servers.
func newImportConfigCommands() []*cobra.Command {
	return []*cobra.Command{
		newImportKubefarmCommand(),
		newImportDnsmasqCommand(),
		configImport("dnsmasq-controller OBJECTS.yaml...", "Objects of dnsmasq-controller", `Dnsmasq-controller reads DnsmasqOptions, DhcpHosts and DhcpOptions, as kubectl get
-o yaml prints them.`,
			`  kubectl get dnsmasqoptions,dhcphosts,dhcpoptions -A -o yaml >objects.yaml
  drover import dnsmasq-controller objects.yaml --output drover.yaml`, dnsmasq.ReadObjects),
		configImport("isc-dhcpd DHCPD.conf...", "Subnets and hosts of ISC's dhcpd", `Isc-dhcpd reads dhcpd.conf and dhcpd6.conf, with the files that they include. A
group becomes a tag of its hosts.`,
			"  drover import isc-dhcpd /etc/dhcp/dhcpd.conf --output drover.yaml", dhcpd.Read),
		configImport("kea KEA.conf...", "Subnets and reservations of ISC's Kea", `Kea reads kea-dhcp4.conf and kea-dhcp6.conf, JSON with comments, or the answer to
config-get. Reservations in a database are not in these files.`,
			"  drover import kea /etc/kea/kea-dhcp4.conf /etc/kea/kea-dhcp6.conf --output drover.yaml", kea.Read),
		configImport("matchbox DIRECTORY|FILE.json...", "Groups and profiles of Matchbox", `Matchbox reads the groups and profiles of a data directory, or single files. A
profile becomes a pool. Matchbox gives no addresses: without --subnet the config has
dhcp: proxy.`,
			"  drover import matchbox /var/lib/matchbox --output drover.yaml", matchbox.Read),
		configImport("warewulf nodes.conf [warewulf.conf]", "Nodes and profiles of Warewulf", `Warewulf reads nodes.conf of Warewulf 4, and warewulf.conf for the network. A node
has the values of its profiles, and nodes with one image are a pool.`,
			"  drover import warewulf /etc/warewulf/nodes.conf /etc/warewulf/warewulf.conf --output drover.yaml", warewulf.Read),
		configImport("csv TABLE.csv...", "Machines of a table", `Csv reads tables whose first line names the columns: name, mac, ip, ip6, pool, tags,
kernelargs, network, uuid, bmc, and the names that MAAS and Foreman use for them.
Several MACs of a machine are separated by blanks. The separator of columns is a
comma, a semicolon or a tab.`,
			"  drover import csv machines.csv --subnet 10.28.0.0/16 --output drover.yaml", inventory.Read),
	}
}

// newImportKubefarmCommand has a flag for the control plane.
func newImportKubefarmCommand() *cobra.Command {
	cmd, c := importCommand("kubefarm VALUES.yaml...", "Pools, nodes and tags of kubefarm's Helm values", `Kubefarm reads the values of kubefarm's Helm chart, merged as Helm merges them: the
chart's own defaults, then each file. The tags keep their names; the tag all has
what kubefarm sets for all nodes.

The control plane (kubernetes:) stays where it is, and needs a kubeconfig. With
--control-plane drover runs a new one, empty, in the admin cluster.`,
		`  drover import kubefarm values.yaml --image debian-12 --cluster cluster1 --output drover.yaml
  drover import kubefarm values.yaml --format objects --control-plane v1.37.1 --output farm.yaml`, kubefarm.Read)
	cmd.Flags().StringVar(&c.Options.Kubernetes, "control-plane", "", "with --format objects: the version of Kubernetes that drover runs, such as v1.37.1")
	return cmd
}

// newImportDnsmasqCommand has flags for the files that dnsmasq.conf may only name.
func newImportDnsmasqCommand() *cobra.Command {
	var hosts, options []string
	cmd := configImport("dnsmasq [DNSMASQ.conf...]", "Ranges, hosts and options of dnsmasq", `Dnsmasq reads dnsmasq.conf, and the files and directories that it includes, as far as
they are on this host. --dhcp-hosts and --dhcp-opts name files of dhcp-hostsfile and
dhcp-optsfile that are elsewhere.`,
		`  drover import dnsmasq /etc/dnsmasq.conf --output drover.yaml
  drover import dnsmasq dnsmasq.conf --dhcp-hosts hosts --subnet 10.28.0.0/16 --dry-run`,
		func(f *migrate.Farm, files []string) error { return dnsmasq.Read(f, files, hosts, options) })
	cmd.Flags().StringArrayVar(&hosts, "dhcp-hosts", nil, "a file of dhcp-hostsfile; once for each")
	cmd.Flags().StringArrayVar(&options, "dhcp-opts", nil, "a file of dhcp-optsfile; once for each")
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args)+len(hosts)+len(options) == 0 {
			return &cli.Error{Code: cli.Usage, Err: errors.New("no file is named")}
		}
		return nil
	}
	return cmd
}

// configFlags are the flags of the imports from configs.
type configFlags struct {
	migrate.Import
	subnets       []string
	address, dhcp string
	diff          bool
	format        string
	report        string
	api           cli.Client
}

// configImport returns the import of one format.
func configImport(use, short, long, example string, read func(*migrate.Farm, []string) error) *cobra.Command {
	cmd, _ := importCommand(use, short, long, example, read)
	return cmd
}

// importCommand returns the import of one format, and its flags.
func importCommand(use, short, long, example string, read func(*migrate.Farm, []string) error) (*cobra.Command, *configFlags) {
	c := &configFlags{}
	cmd := &cobra.Command{
		Use: use, Short: short, Example: example, DisableFlagsInUseLine: true,
		Long: long + `

The result is a config with comments, and a report of each option: taken over,
without a counterpart, or not understood, with its file and line. An existing
--output file keeps what you changed in it: only nodes follow the import. With
--format objects it is objects of an admin cluster, for kubectl apply.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return &cli.Error{Code: cli.Usage, Err: errors.New("no file is named")}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, files []string) error {
			if err := c.parse(); err != nil {
				return &cli.Error{Code: cli.Usage, Err: err}
			}
			c.Command, c.API = "drover import "+strings.Join(append([]string{cmd.Name()}, files...), " "), &c.api
			c.Read = func(f *migrate.Farm) error { return read(f, files) }
			return c.run(cmd)
		},
	}
	c.flags(cmd)
	return cmd, c
}

// flags adds the flags of all formats.
func (c *configFlags) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVar(&c.Options.Interfaces, "interface", nil, "network card that nodes boot from; once for each")
	f.StringVar(&c.address, "address", "", "address of this server, for what the other config calls its own")
	f.StringVar(&c.dhcp, "dhcp", "", "full|proxy|off: what drover does of DHCP")
	f.StringVar(&c.Options.Image, "image", "", "image of the pools (default "+migrate.DefaultImage+", to be replaced)")
	f.StringVar(&c.Options.Pool, "pool", "", "pool of the machines (default "+migrate.DefaultPool+")")
	f.StringVar(&c.Options.Cluster, "cluster", "", "cluster that the machines join")
	f.StringArrayVar(&c.subnets, "subnet", nil, "a network such as 10.28.0.0/16 that the other config does not name; once for each")
	f.StringVar(&c.format, "format", "config", "config|objects: what is written; objects are YAML documents for kubectl")
	f.StringVarP(&c.Options.Namespace, "namespace", "n", "drover", "namespace of the objects")
	f.StringVarP(&c.Config, "config", "c", "", "compare with this config file, and print it with what is new")
	f.StringVar(&c.Output, "output", "", "config file to write, and to compare with; default: standard output")
	f.BoolVar(&c.Apply, "apply", false, "write the nodes to the running server, all or none; the rest is for its config file")
	f.BoolVar(&c.DryRun, "dry-run", false, "only show what would change")
	f.BoolVar(&c.diff, "diff", false, "show what changes, also when it is written")
	f.StringVarP(&c.report, "report", "o", "text", "how the report is shown: text|json|yaml")
	c.api.Flags(cmd)
	_ = cmd.MarkFlagFilename("config", "yaml", "yml")
	for name, words := range map[string][]string{"report": {"text", "json", "yaml"}, "format": {"config", "objects"}, "dhcp": {"full", "proxy", "off"}} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	}
}

// parse checks the flags that have values of their own.
func (c *configFlags) parse() error {
	switch c.report {
	case "text", "json", "yaml":
	default:
		return fmt.Errorf("unknown output %q (text, json or yaml)", c.report)
	}
	if err := c.parseFormat(); err != nil {
		return err
	}
	switch c.Options.DHCP = pools.DHCPMode(c.dhcp); c.Options.DHCP {
	case "", pools.DHCPFull, pools.DHCPProxy, pools.DHCPOff:
	default:
		return fmt.Errorf("--dhcp %q: want full, proxy or off", c.dhcp)
	}
	if c.address != "" {
		a, err := netip.ParseAddr(c.address)
		if err != nil || !a.Is4() {
			return fmt.Errorf("--address %q: want the IPv4 address of this server", c.address)
		}
		c.Options.Address = a
	}
	for _, text := range c.subnets {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return fmt.Errorf("--subnet %q: want a network such as 10.28.0.0/16", text)
		}
		c.Options.Subnets = append(c.Options.Subnets, p)
	}
	for flag, text := range map[string]string{"--pool": c.Options.Pool, "--cluster": c.Options.Cluster} {
		if text != "" && migrate.Label(text) != text {
			return fmt.Errorf("%s %q: want a name of a-z, 0-9 and '-'", flag, text)
		}
	}
	if c.Options.Image != "" && !pools.IsImage(c.Options.Image) {
		return fmt.Errorf("--image %q: want the name of an image", c.Options.Image)
	}
	return nil
}

// run runs the import, and prints its result.
func (c *configFlags) run(cmd *cobra.Command) error {
	if c.format == "objects" {
		return c.runObjects(cmd)
	}
	r, err := c.Run(cmd.Context())
	if err == nil {
		err = c.print(cmd, r)
	}
	if err == nil {
		err = r.Write(cmd.OutOrStdout())
	}
	return importResult(r, err)
}

// importResult returns the error with the exit code of an import.
func importResult(r *migrate.Result, err error) error {
	switch {
	case err != nil:
		return powerError(err)
	case r.Restricted:
		return &cli.Error{Code: cli.Partly, Err: errors.New("ranges or passwords are left out, which drover would give to more machines: see the report")}
	case r.Conflicts > 0:
		return &cli.Error{Code: cli.Partly, Err: fmt.Errorf("machines in conflict, left as they were: %d", r.Conflicts)}
	case r.Partial:
		return &cli.Error{Code: cli.Partly, Err: errors.New("some of it was not understood, or left out: see the report")}
	}
	return nil
}

// print prints the report: to standard output, unless that is for the config.
func (c *configFlags) print(cmd *cobra.Command, r *migrate.Result) error {
	out := cmd.OutOrStdout()
	if !c.Apply && !c.DryRun && c.Output == "" {
		out = cmd.ErrOrStderr()
	}
	if c.report != "text" {
		return cli.Print(out, r, c.report)
	}
	for _, n := range r.Notes {
		fmt.Fprintln(out, n)
	}
	if c.diff || c.DryRun || c.Apply {
		printLines(out, r.Changes)
	}
	_, err := fmt.Fprintln(out, r.Summary())
	return err
}

func printLines(out io.Writer, changes []migrate.Change) {
	for _, ch := range changes {
		fmt.Fprintln(out, printable.Text(ch.String()))
	}
}
