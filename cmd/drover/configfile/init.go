package configfile

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/internal/atomicfile"
	"drover/pools"
	"drover/pools/config"
)

// first is what drover init asks, and what it finds out.
type first struct {
	File      string         `json:"file"`
	Interface string         `json:"interface"`
	DHCP      pools.DHCPMode `json:"dhcp"`
	Network   netip.Prefix   `json:"network"` // the server's address in it
	Router    netip.Addr     `json:"router,omitzero"`
	Cluster   string         `json:"cluster,omitempty"`
	Image     string         `json:"image"`

	router, network string // as typed
	yes             bool
	in              *bufio.Reader
	out             io.Writer
	host            fs.FS // /proc
}

// none is the answer for a router or cluster that is not there.
const none = "-"

func newInitCommand() *cobra.Command {
	f := &first{host: os.DirFS("/proc")}
	var output cli.Output
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Write a first config, after five questions",
		Long: `Init asks for the interface that the machines are on, whether drover gives addresses, the
router, the cluster that the machines join, and their image. It writes a config that drover
check accepts, with a pool and no nodes: a machine gets nothing until a node declares it.
An existing file is left alone.

A flag answers its question, and -y takes the proposals for the others. With --address the
interface may have its address later.`,
		Example: `  drover init
  drover init -c drover.yaml -y
  drover init --interface eth1 --dhcp proxy --cluster tenant-a --image debian-12 --router - -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.in, f.out = bufio.NewReader(cmd.InOrStdin()), cmd.ErrOrStderr()
			if _, err := os.Lstat(f.File); err == nil {
				return fmt.Errorf("%s exists: drover check -c %s checks it", f.File, f.File)
			}
			if err := f.ask(cmd); err != nil {
				return err
			}
			text := f.text()
			if _, err := config.Parse(f.File, []byte(text)); err != nil {
				return cli.PrintMistakes(f.File, err, cmd.ErrOrStderr())
			}
			if err := atomicfile.Write(f.File, []byte(text), 0o644); err != nil {
				return err
			}
			return output.Print(cmd, f, f.next)
		},
	}
	cli.ConfigFlag(cmd, &f.File)
	cli.YesFlag(cmd, &f.yes)
	flags := cmd.Flags()
	flags.StringVar(&f.Interface, "interface", "", "network card that the machines are on")
	flags.StringVar(&f.network, "address", "", "address of this server there with the length of its network, 10.28.0.2/16 (default: the interface's)")
	flags.StringVar((*string)(&f.DHCP), "dhcp", "", "full|proxy|off: whether drover gives addresses, beside another server, or does no DHCP")
	flags.StringVar(&f.router, "router", "", "router of the machines, - for none")
	flags.StringVar(&f.Cluster, "cluster", "", "cluster that they join, - for none")
	flags.StringVar(&f.Image, "image", "", "image that they run")
	_ = cmd.RegisterFlagCompletionFunc("dhcp", cobra.FixedCompletions([]string{"full", "proxy", "off"}, cobra.ShellCompDirectiveNoFileComp))
	output.Flag(cmd, "text", "json", "yaml")
	return cmd
}

// ask asks the five questions, unless a flag answers them.
func (f *first) ask(cmd *cobra.Command) error {
	given := cmd.Flags().Changed
	cards := networkCards(f.host)
	proposal := ""
	if len(cards) > 0 {
		proposal = cards[0].name
	}
	var words []string
	for _, c := range cards {
		words = append(words, c.name+" "+c.network.String())
	}
	about := "Interface that the machines are on"
	if len(words) > 1 {
		about += " (" + strings.Join(words, ", ") + ")"
	}
	dhcp := string(f.DHCP)
	for _, q := range []struct {
		flag, about, proposal string
		value                 *string
		take                  func() error
	}{
		{"interface", about, proposal, &f.Interface, func() error { return f.takeNetwork(cards) }},
		{"dhcp", "Does drover give addresses (full), beside another DHCP server (proxy), or do no DHCP (off)", "full", &dhcp, func() error { return f.takeDHCP(dhcp) }},
		{"router", "Router of the machines, - for none", none, &f.router, f.takeRouter},
		{"cluster", "Cluster that the machines join, - for none", none, &f.Cluster, f.takeCluster},
		{"image", "Image that they run", "debian-12", &f.Image, f.takeImage},
	} {
		if q.flag == "router" {
			q.proposal = cmp.Or(gatewayOf(f.host, f.Interface, f.Network), none)
		}
		if err := f.one(q.about, q.proposal, given(q.flag), q.value, q.take); err != nil {
			return &cli.Error{Code: cli.Usage, Err: fmt.Errorf("--%s: %w", q.flag, err)}
		}
	}
	return nil
}

// tries bounds how often a question is asked.
const tries = 3

// one asks one question until take accepts the answer.
func (f *first) one(about, proposal string, given bool, value *string, take func() error) error {
	if given || f.yes {
		if !given {
			*value = proposal
		}
		return take()
	}
	for try := 1; ; try++ {
		fmt.Fprintf(f.out, "%s [%s]: ", about, proposal)
		line, err := f.in.ReadString('\n')
		if err != nil && strings.TrimSpace(line) == "" {
			fmt.Fprintln(f.out)
			return errors.New("there was no answer (give the flag, or -y for the proposals)")
		}
		*value = cmp.Or(strings.TrimSpace(line), proposal)
		if err = take(); err == nil || try == tries {
			return err
		}
		fmt.Fprintln(f.out, err)
	}
}

func (f *first) takeNetwork(cards []card) error {
	if f.Interface == "" || strings.ContainsFunc(f.Interface, func(r rune) bool { return r <= ' ' || r > '~' || r == '/' }) {
		return fmt.Errorf("%q is not a network card (ip link shows them)", f.Interface)
	}
	if f.network != "" {
		p, err := netip.ParsePrefix(f.network)
		if err != nil || !p.Addr().Is4() || p.Bits() > 30 {
			return fmt.Errorf("--address %q: want an IPv4 address with the length of its network, such as 10.28.0.2/16", f.network)
		}
		f.Network = p
		return nil
	}
	i := slices.IndexFunc(cards, func(c card) bool { return c.name == f.Interface })
	if i < 0 {
		return fmt.Errorf("%q has no IPv4 address of a network here (give it one, or --address 10.28.0.2/16)", f.Interface)
	}
	f.Network = cards[i].network
	return nil
}

func (f *first) takeDHCP(answer string) error {
	f.DHCP = pools.DHCPMode(answer)
	if !slices.Contains([]pools.DHCPMode{pools.DHCPFull, pools.DHCPProxy, pools.DHCPOff}, f.DHCP) {
		return fmt.Errorf("%q: want full, proxy or off", answer)
	}
	return nil
}

func (f *first) takeRouter() (err error) {
	f.Router = netip.Addr{}
	if f.router == none {
		return nil
	}
	if f.Router, err = netip.ParseAddr(f.router); err != nil || !f.Network.Contains(f.Router) {
		return fmt.Errorf("%q is not an address in %s", f.router, f.Network.Masked())
	}
	return nil
}

// plainName is the form of names that drover accepts.
var plainName = regexp.MustCompile(`^[a-z][a-z0-9._-]{0,100}$`)

// plain reports whether a name needs no quotes in YAML, and drover accepts it.
func plain(name string) bool {
	return plainName.MatchString(name) &&
		!slices.Contains([]string{"y", "n", "yes", "no", "on", "off", "true", "false", "null"}, name)
}

func (f *first) takeCluster() error {
	if f.Cluster == none {
		f.Cluster = ""
		return nil
	}
	if !plain(f.Cluster) || strings.ContainsAny(f.Cluster, "._") {
		return fmt.Errorf("%q: the name of a cluster has lower-case letters, digits and '-', a letter first", f.Cluster)
	}
	return nil
}

func (f *first) takeImage() error {
	if !plain(f.Image) {
		return fmt.Errorf("%q: the name of an image has lower-case letters, digits, '.', '_' and '-', a letter first", f.Image)
	}
	return nil
}

// text returns the config.
func (f *first) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# The farm. docs/config.md describes each field, and drover check -c %s checks the file.\n", f.File)
	fmt.Fprintf(&b, "server:\n  interfaces: [%q]\n  address: %s # machines boot from here\n", f.Interface, f.Network.Addr())
	if f.DHCP != pools.DHCPFull {
		fmt.Fprintf(&b, "  dhcp: %q\n", f.DHCP)
	}
	fmt.Fprintf(&b, "subnets:\n  - cidr: %s\n", f.Network.Masked())
	if f.Router.IsValid() {
		fmt.Fprintf(&b, "    router: %s\n    dns: [%s]\n", f.Router, f.Router)
	}
	if f.Cluster != "" {
		fmt.Fprintf(&b, "clusters:\n  - name: %s\n    kubeconfig: %s.kubeconfig # docs/clusters.md says how to make it\n", f.Cluster, f.Cluster)
	}
	fmt.Fprintf(&b, "pools:\n  - name: compute\n    image: %s\n", f.Image)
	if f.Cluster != "" {
		fmt.Fprintf(&b, "    cluster: %s\n", f.Cluster)
	}
	b.WriteString("    # drover node add and drover unknown adopt add nodes while drover runs; or list them here:\n" +
		"    # nodes:\n    #   - {name: m1, macs: [\"52:54:00:00:00:01\"], ip: " + f.Network.Addr().Next().String() + "}\n")
	return b.String()
}

// next tells what comes next.
func (f *first) next(w io.Writer) error {
	at := ""
	if f.File != cli.DefaultConfig {
		at = " -c " + f.File
	}
	_, err := fmt.Fprintf(w, `%s: machines in %s boot from %s on %s

  drover check%s
  drover loaders install
  drover image build --name %s ...
  drover doctor%s
  drover serve%s
`, f.File, f.Network.Masked(), f.Network.Addr(), f.Interface, at, f.Image, at, at)
	return err
}
