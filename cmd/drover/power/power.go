package power

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/cmd/drover/cli/nodeset"
	"drover/cmd/drover/node"
	"drover/hardware/bmc"
	"drover/hardware/importer"
	"drover/internal/natural"
	"drover/internal/printable"
	"drover/internal/wait"
	"drover/pools"
	"drover/web/client"
)

// powerCommand holds the flags of "drover power ACTION".
type powerCommand struct {
	action  bmc.Action
	api     cli.Client
	config  string
	login   bmcFlags
	chassis string
	driver  string
	program string
	options []string
	system  string
	uefi    bool
	wait    time.Duration
	poll    time.Duration
	atOnce  int
	drain   time.Duration
	alone   bool // without a server
	yes     bool
	output  cli.Output
}

func newPowerCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "power",
		Short: "Switch machines on and off, and boot them from the network",
		Long: `Power lets a running server switch machines, and waits for the result. The server
uses the chassis of its config, or the node's "power" there.

With --chassis or --driver this command switches the machines without a server:
through the manager of a Moonshot chassis (over SSH, or REST), a BMC or iLO with
Redfish (redfish), any BMC by ipmitool (ipmi), or a program of your own (exec).

"off" cuts the power without asking the operating system. "pxe" sets a machine to boot
from the network once, and reads that back, before it switches the machine off and on. A
machine with an error is left as it was. "cycle" leaves machines off that are off. An
unknown state is never taken for off.

Unless the selector is a list of names, all of them typed out, the command shows the
machines and asks. It switches --max-parallel of them at a time.

With --drain the server cordons their Nodes and evicts the pods before it switches them off.
A machine whose pods do not go in time is not switched, and its Node is uncordoned.`,
		Example: `  drover power pxe m1c1n1,m1c2n1
  drover power status chassis=m1,tag=gpu
  drover power cycle pool=compute --max-parallel 8 --drain
  drover power cycle state=stuck,cluster=tenant-a
  drover power on m1c[01-45] -y
  drover power status all --chassis m1 -c drover.yaml
  drover power status all --chassis m1=10.1.0.1 --legacy --password-file bmc.pass
  drover power pxe c1n1,c3,5-9 --chassis m1=10.1.0.1 --legacy --password-file bmc.pass
  drover power cycle ilo-a1,ilo-a2 --driver redfish --password-file bmc.pass
  drover power on bmc7 --driver ipmi --option=-L --option=OPERATOR --password-file bmc.pass
  drover power pxe rack4-n1 --driver exec --program /usr/local/bin/outlet`,
	}
	short := map[bmc.Action]string{
		bmc.Status: "Show whether machines are on", bmc.SwitchOn: "Switch machines on", bmc.SwitchOff: "Switch machines off, at once",
		bmc.Cycle: "Switch machines off and on", bmc.PXE: "Boot machines from the network, once",
	}
	for _, a := range bmc.Actions() {
		cmd.AddCommand((&powerCommand{action: a}).command(short[a]))
	}
	return cli.Group(cmd)
}

func (p *powerCommand) command(short string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   string(p.action) + " SELECTOR",
		Short: short,
		Long: short + `.

SELECTOR lists nodes of the server, such as m1c1n1,m1c[02-45]n1, or rules that must all
match, those of drover node list: pool=NAME, chassis=NAME, state=stuck … With --chassis it lists slots, such
as c1n1,c3,5-9 or all; with the drivers redfish, ipmi and exec it lists addresses,
or names for the program.`,
		Example: strings.ReplaceAll(`  drover power ACTION m1c1n1,m1c2n1
  drover power ACTION pool=compute,tag=gpu --max-parallel 8
  drover power ACTION m1c[01-45] -y -o json`, "ACTION", string(p.action)),
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return p.run(cmd, args[0]) },
	}
	f := cmd.Flags()
	f.StringVar(&p.chassis, "chassis", "", "[NAME=]ADDRESS of the chassis manager; with -c the name of one in the config")
	f.StringVarP(&p.config, "config", "c", "", "take the login of --chassis from this config file")
	f.StringVar(&p.driver, "driver", "", "ssh|rest|redfish|ipmi|exec; default: ssh, or rest for a chassis at https://")
	f.StringVar(&p.program, "program", "", "program of the driver exec, or ipmitool by another name")
	f.StringArrayVar(&p.options, "option", nil, "option for ipmitool; once for each word")
	f.StringVar(&p.system, "system", "", "ID, name, serial number or UUID of the machine, where a Redfish service has several")
	f.BoolVar(&p.uefi, "uefi", false, "the machine boots by UEFI (ipmi); default: as its boot flags say")
	f.DurationVar(&p.wait, "wait", 2*time.Minute, "longest wait for a machine to be on, or off")
	f.DurationVar(&p.poll, "poll", 5*time.Second, "time between two questions for the state")
	f.IntVar(&p.atOnce, "max-parallel", 32, "machines that are switched at a time; 0: all")
	if p.action == bmc.SwitchOff || p.action == bmc.Cycle || p.action == bmc.PXE {
		f.DurationVar(&p.drain, "drain", 0, "cordon the Nodes and evict their pods before, for this long at most; what is not drained then is not switched")
		f.Lookup("drain").NoOptDefVal = "5m"
	}
	cli.YesFlag(cmd, &p.yes)
	p.login.add(cmd, true)
	p.api.Flags(cmd)
	_ = cmd.MarkFlagFilename("config", "yaml", "yml")
	p.output.Flag(cmd, "table", "json", "yaml")
	_ = cmd.RegisterFlagCompletionFunc("driver", cobra.FixedCompletions([]string{"ssh", "rest", "redfish", "ipmi", "exec"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (p *powerCommand) run(cmd *cobra.Command, selector string) error {
	var results []bmc.Result
	var err error
	if f := cmd.Flags(); f.Changed("chassis") || f.Changed("driver") {
		p.alone = true
		results, err = p.switchMachines(cmd, selector)
	} else {
		results, err = p.order(cmd, selector)
	}
	if err != nil {
		return powerError(err)
	}
	if err := p.output.Print(cmd, results, func(w io.Writer) error { return powerTable(w, results) }); err != nil {
		return err
	}
	return powerOutcome(results)
}

// check rejects flags that both ways to switch machines exclude.
func (p *powerCommand) check() error {
	if p.poll <= 0 || p.wait <= 0 {
		return errors.New("--poll and --wait must be more than nothing")
	}
	if p.drain < 0 || p.drain > 0 && p.alone {
		return errors.New("--drain wants a time, and a server that knows the clusters")
	}
	if p.atOnce < 0 {
		return fmt.Errorf("--max-parallel %d: want a number of machines, or 0 for all", p.atOnce)
	}
	return nil
}

// order lets a server switch the machines, and follows the job.
func (p *powerCommand) order(cmd *cobra.Command, selector string) ([]bmc.Result, error) {
	o, err := p.orderOf(cmd.Context(), selector)
	if _, ok := errors.AsType[*cli.Error](err); ok {
		return nil, err
	}
	switch {
	case err != nil:
	case p.config != "":
		err = errors.New("--config is for --chassis: a server has its own")
	default:
		err = p.check()
	}
	if err != nil {
		return nil, &cli.Error{Code: cli.Usage, Err: err}
	}
	o.Wait, o.MaxParallel, o.Drain = pools.Duration(p.wait), p.atOnce, pools.Duration(p.drain)
	if err := p.confirmNodes(cmd, selector, o); err != nil {
		return nil, err
	}
	job, err := powerJob(&p.api, cmd.Context(), cmd.ErrOrStderr(), o, min(p.poll, time.Second))
	if err != nil {
		return nil, err
	}
	var results []bmc.Result
	for _, n := range job.Nodes {
		r := bmc.Result{Name: n.Name, State: bmc.State(n.State), Error: n.Error}
		if n.Error != "" {
			r.Err = errors.New(n.Error)
		}
		results = append(results, r)
	}
	return results, nil
}

// switchMachines switches the machines without a server.
func (p *powerCommand) switchMachines(cmd *cobra.Command, selector string) ([]bmc.Result, error) {
	login, err := p.target(cmd)
	if err != nil {
		return nil, &cli.Error{Code: cli.Usage, Err: err}
	}
	var machines []bmc.Machine
	var done func()
	if p.ofChassis() {
		machines, done, err = p.chassisMachines(cmd.Context(), login, selector)
	} else {
		machines, done, err = p.bmcMachines(login, selector)
	}
	defer done()
	if err == nil && len(machines) == 0 {
		err = &cli.Error{Code: cli.Usage, Err: errors.New("SELECTOR selects no machine")}
	}
	if err != nil {
		return nil, err
	}
	names := make([]string, len(machines))
	for i, m := range machines {
		names[i] = m.Name
	}
	if err := p.confirm(cmd, selector, names); err != nil {
		return nil, err
	}
	s := bmc.Switcher{Poll: p.poll, Wait: p.wait, OnCommand: func(machine, command string) {
		cli.Note(cmd.ErrOrStderr(), machine, command)
	}}
	var results []bmc.Result
	for group := range slices.Chunk(machines, cmp.Or(p.atOnce, len(machines))) {
		results = append(results, s.Do(cmd.Context(), p.action, group)...)
	}
	return results, nil
}

// confirmNodes lets the server choose the nodes of a request, and asks the operator.
func (p *powerCommand) confirmNodes(cmd *cobra.Command, selector string, o pools.PowerRequest) error {
	if p.yes || p.action == bmc.Status {
		return nil
	}
	job, err := cli.Send(cmd.Context(), &p.api, client.Power.Try(), o)
	if err != nil {
		return err
	}
	names := make([]string, len(job.Nodes))
	for i, n := range job.Nodes {
		names[i] = n.Name
	}
	return p.confirm(cmd, selector, names)
}

// confirm shows the machines of a selector and asks the operator, unless the selector
// names each of them.
func (p *powerCommand) confirm(cmd *cobra.Command, selector string, names []string) error {
	typed := selected(selector)
	named := func(name string) bool { return slices.Contains(typed, name) }
	if p.action == bmc.Status || !slices.ContainsFunc(names, func(name string) bool { return !named(name) }) {
		return nil
	}
	slices.SortFunc(names, natural.Compare)
	fmt.Fprintf(cmd.ErrOrStderr(), "power %s: %s\n", p.action, printable.Text(strings.Join(names, " ")))
	return cli.Confirm(cmd, p.yes, fmt.Sprintf("power %s of %d machines?", p.action, len(names)))
}

// ofChassis reports whether the driver switches the slots of a chassis.
func (p *powerCommand) ofChassis() bool { return p.driver == "ssh" || p.driver == "rest" }

// selected splits a list of names and rules.
func selected(selector string) []string { return nodeset.Words(selector) }

// orderOf is [orderOf] for all rules that "drover node list" knows: the nodes that they fit now.
func (p *powerCommand) orderOf(ctx context.Context, selector string) (pools.PowerRequest, error) {
	words := selected(selector)
	other := func(word string) bool {
		key, _, rule := strings.Cut(word, "=")
		return rule && !slices.Contains([]string{"pool", "chassis", "tag"}, key)
	}
	names := func(word string) bool { return !strings.Contains(word, "=") }
	if !slices.ContainsFunc(words, other) || slices.ContainsFunc(words, names) {
		return orderOf(p.action, selector)
	}
	o := pools.PowerRequest{Action: string(p.action)}
	var err error
	if o.Nodes, err = node.Chosen(ctx, &p.api, append(words, "from!=catch-all")); err == nil && len(o.Nodes) == 0 {
		err = &cli.Error{Code: cli.Failed, Err: fmt.Errorf("no node fits %s now", selector)}
	}
	return o, err
}

// orderOf reads a selector for a running server: names of nodes, or pool=NAME,
// chassis=NAME and tag=NAME, all of which must fit. Mixing both is an error, which
// is better than switching more machines than intended.
func orderOf(action bmc.Action, selector string) (pools.PowerRequest, error) {
	o := pools.PowerRequest{Action: string(action)}
	for _, word := range selected(selector) {
		key, value, rule := strings.Cut(word, "=")
		into := map[string]*string{"pool": &o.Pool, "chassis": &o.Chassis, "tag": &o.Tag}[key]
		switch {
		case !rule:
			names, err := nodeset.Expand(word)
			if err != nil {
				return o, err
			}
			o.Nodes = append(o.Nodes, names...)
		case into == nil || value == "":
			return o, fmt.Errorf("%q: want pool=NAME, chassis=NAME or tag=NAME", word)
		case *into != "":
			return o, fmt.Errorf("%q: %s= is there twice, and a node has one", word, key)
		default:
			*into = value
		}
	}
	if rules := o.Pool+o.Chassis+o.Tag != ""; rules == (len(o.Nodes) > 0) {
		return o, errors.New("SELECTOR wants names of nodes, such as m1c1n1,m1c2n1, or pool=NAME, chassis=NAME and tag=NAME, which must all fit (the slots of a chassis that no server knows: --chassis)")
	}
	return o, nil
}

// powerJob starts a job on a server and follows it. It prints each step to errs.
func powerJob(c *cli.Client, ctx context.Context, errs io.Writer, o pools.PowerRequest, every time.Duration) (job pools.PowerJob, err error) {
	if job, err = cli.Send(ctx, c, client.Power, o); err != nil {
		return job, err
	}
	told := map[string]string{}
	for {
		for _, n := range job.Nodes {
			if told[n.Name] != n.Step && n.Step != pools.PowerWaiting && n.Step != pools.PowerDone && n.Step != pools.PowerFailed {
				cli.Note(errs, n.Name, n.Step)
			}
			told[n.Name] = n.Step
		}
		if !job.Ended.IsZero() {
			return job, nil
		}
		if err := wait.Sleep(ctx, every); err != nil {
			return job, fmt.Errorf("%w: the server goes on; GET %s tells how", err, client.PowerJob.Of(job.ID))
		}
		if job, err = cli.Get(ctx, c, client.PowerJob.Of(job.ID)); err != nil {
			return job, err
		}
	}
}

func powerTable(w io.Writer, results []bmc.Result) error {
	return cli.Table(w, results, "MACHINE\tPOWER\tERROR", func(r bmc.Result) []any { return []any{r.Name, r.State, r.Error} })
}

// powerOutcome returns the error of the whole command.
func powerOutcome(results []bmc.Result) error {
	var errs []error
	for _, r := range results {
		if r.Err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", r.Name, r.Err))
		}
	}
	switch {
	case len(errs) == 0:
		return nil
	case len(errs) < len(results):
		return &cli.Error{Code: cli.Partly, Err: errors.Join(errs...)}
	}
	return powerError(errors.Join(errs...))
}

func isUsage(err error) bool {
	_, ok := errors.AsType[*importer.UsageError](err)
	return ok
}

// powerError gives an error of the hardware its exit code.
func powerError(err error) error {
	if _, ok := errors.AsType[*cli.Error](err); ok {
		return err
	}
	switch {
	case errors.Is(err, bmc.ErrRefused), errors.Is(err, bmc.ErrHostKey):
		return &cli.Error{Code: cli.Refused, Err: err}
	case errors.Is(err, bmc.ErrUnreachable):
		return &cli.Error{Code: cli.Unreachable, Err: err}
	case isUsage(err):
		return &cli.Error{Code: cli.Usage, Err: err}
	}
	return err
}
