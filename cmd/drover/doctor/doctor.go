// Package doctor has the command drover doctor: it examines the host of a server, before and
// while it serves, and gives each fault with its remedy.
//
// It asks as the machines of the farm do: loaders by TFTP, and other DHCP servers by a
// DISCOVER. The rules of the config are in package config; this package knows no node.
package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/pools/config"
	"drover/pools/resolve"
)

// The results of a check.
const (
	ok      = cli.OK
	warning = cli.Warning
	fault   = cli.Fault
	skipped = cli.Skipped
)

// doctor examines a host.
type doctor struct {
	config, state, images, loaders string
	wait                           time.Duration // for answers of the network
	now                            func() time.Time
	api                            cli.Client

	farm     *resolve.Farm
	running  bool // a server answers
	findings cli.Findings
}

// NewCommand returns the command drover doctor.
func NewCommand() *cobra.Command {
	d := &doctor{now: time.Now}
	var output cli.Output
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Examine the host of a server, and say what to do about each fault",
		Long: `Doctor examines the host, before and while drover serves: the config, interfaces and
addresses, ports that other programs hold, other DHCP servers on the wire (it sends a
DISCOVER and listens, as root), a firewall that drops, loaders (it fetches one by TFTP while
the server runs), images, clusters (it connects to their API servers), the ends of kubeconfigs and certificates, the state directory,
disks, the clock, and what /readyz tells. It changes nothing. It fails if there is a fault;
warnings are none.`,
		Example: "  drover doctor -c /etc/drover/drover.yaml\n  drover doctor -o json",
		Args:    cobra.NoArgs,
	}
	output.Flag(cmd, "text", "json", "yaml")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		d.images = cmp.Or(d.images, filepath.Join(d.state, "images"))
		d.loaders = cmp.Or(d.loaders, filepath.Join(d.state, "loaders"))
		d.api.InState(d.state)
		d.examine(cmd.Context())
		if err := output.Print(cmd, d.findings, d.findings.Write); err != nil {
			return err
		}
		if faults := d.findings.Faults(); faults > 0 {
			return fmt.Errorf("faults: %d", faults)
		}
		return nil
	}
	cli.ConfigFlag(cmd, &d.config)
	d.api.Flags(cmd)
	f := cmd.Flags()
	f.StringVar(&d.state, "state", cli.DefaultState, "state directory of the server")
	f.StringVar(&d.images, "images", "", "directory of images (default STATE/images)")
	f.StringVar(&d.loaders, "loaders", "", "directory of boot loaders (default STATE/loaders)")
	f.DurationVar(&d.wait, "wait", 3*time.Second, "how long to listen for other DHCP servers")
	cli.OnHost(cmd, "ask for drover status", "config", "state")
	return cmd
}

// examine makes all checks.
func (d *doctor) examine(ctx context.Context) {
	farm, err := config.Load(d.config)
	if err != nil {
		d.add("config", fault, err.Error(), "mend the file; drover check gives each mistake with its place")
		d.clock()
		d.stateDirectory()
		return
	}
	d.farm = farm
	d.add("config", ok, fmt.Sprintf("%s: %d pools, %d nodes", d.config, len(farm.Config.Pools), len(farm.Nodes())), "")
	d.server(ctx)
	d.interfaces()
	d.addresses()
	d.ports()
	d.otherServers(ctx)
	d.firewall(ctx)
	d.loaderFiles()
	d.tftp(ctx)
	d.imageFiles()
	d.kubeconfigs(ctx)
	d.certificates()
	d.stateDirectory()
	d.disks()
	d.clock()
}

func (d *doctor) add(check string, result cli.Result, text, remedy string) {
	d.findings.Add(check, result, text, remedy)
}

// server asks whether a server runs here, and what it lacks.
func (d *doctor) server(ctx context.Context) {
	var ready struct {
		Ready    bool
		Problems []struct {
			Part, Problem string
			Warning       bool
		}
	}
	err := d.api.CallAccepting(ctx, "GET", "/readyz", 503, &ready)
	switch {
	case cli.CodeOf(err) == cli.Unreachable, errors.Is(err, fs.ErrNotExist): // or no server has made a token yet
		d.add("server", skipped, "no server answers at its REST API: what it would tell is left out", "systemctl start drover, if it should run")
		return
	case err != nil: // no token, say: it runs nevertheless
		d.running = !errors.Is(err, context.Canceled) && cli.CodeOf(err) == cli.Refused
		d.add("server", warning, err.Error(), "run drover doctor as the user of the server or as root, or give --token-file")
		return
	}
	d.running = true
	if len(ready.Problems) == 0 {
		d.add("server", ok, "it runs and is ready", "")
	}
	for _, p := range ready.Problems {
		result := fault
		if p.Warning {
			result = warning
		}
		d.add("server", result, p.Part+": "+p.Problem, "docs/operate.md says what to do; it is over when drover status shows it no longer")
	}
}

// interfaces checks the interfaces of the config.
func (d *doctor) interfaces() {
	names := d.farm.Config.Server.Interfaces
	for _, name := range names {
		i, err := net.InterfaceByName(name)
		if err != nil {
			d.add("interface", fault, fmt.Sprintf("%s: %v", name, err), "name an interface of this host in server.interfaces (ip link shows them)")
			continue
		}
		addrs, _ := i.Addrs()
		switch {
		case i.Flags&net.FlagUp == 0:
			d.add("interface", fault, name+" is down", "ip link set "+name+" up")
		case i.Flags&net.FlagRunning == 0 && i.Flags&net.FlagLoopback == 0:
			d.add("interface", fault, name+" has no carrier", "plug in its cable, or name the interface in use in server.interfaces")
		case len(addrs) == 0:
			d.add("interface", fault, name+" has no address", "give it one of its network: ip address add ADDRESS/LENGTH dev "+name)
		default:
			d.add("interface", ok, fmt.Sprintf("%s: %v", name, addrs), "")
		}
	}
}

// addresses checks that the boot addresses are addresses of this host.
func (d *doctor) addresses() {
	local := map[string]bool{}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		d.add("address", warning, err.Error(), "")
		return
	}
	for _, a := range addrs {
		if n, isNet := a.(*net.IPNet); isNet {
			local[n.IP.String()] = true
		}
	}
	for i, s := range d.farm.Config.Subnets {
		a, from := d.farm.BootAddress(i)
		switch {
		case !a.IsValid():
			d.add("address", fault, fmt.Sprintf("subnet %s: no boot address is known", s.CIDR), "set address: in the subnet or in server, or give the server's interface an address")
		case !local[a.String()]:
			d.add("address", fault, fmt.Sprintf("subnet %s: its machines boot from %s (%s), which this host does not have", s.CIDR, a, from), "give an interface this address, or correct address:")
		default:
			d.add("address", ok, fmt.Sprintf("subnet %s boots from %s", s.CIDR, a), "")
		}
	}
}
