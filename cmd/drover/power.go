package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"drover/pools"
	"drover/pools/config"
	"drover/pools/ilo"
)

// powerCommand is "drover power ACTION".
type powerCommand struct {
	action  ilo.Action
	api     apiClient
	config  string
	bmc     bmcFlags
	chassis string
	driver  string
	program string
	options []string
	wait    time.Duration
	poll    time.Duration
	output  string
}

func newPowerCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "power",
		Short: "Switch machines on and off, and boot them from the network",
		Long: `Power has a running server switch machines, and waits for it. The server knows
how: over the chassis of its config, or as the node's "power" there says.

With --chassis or --driver the machines are switched from here, and no server is
asked: through the manager of a Moonshot chassis (over SSH, or REST), a server's
iLO (redfish), any BMC by ipmitool (ipmi), or a program of your own (exec).

"off" asks no operating system. "pxe" switches a machine off, waits until it is,
sets it to boot from the network once, and switches it on. A state that is not
known is waited for and never taken for off.`,
		Example: `  drover power pxe m1c1n1,m1c2n1
  drover power status chassis=m1,tag=gpu
  drover power status all --chassis m1 -c drover.yaml
  drover power status all --chassis m1=10.1.0.1 --legacy --password-file ilo.pass
  drover power pxe c1n1,c3,5-9 --chassis m1=10.1.0.1 --legacy --password-file ilo.pass
  drover power cycle ilo-a1,ilo-a2 --driver redfish --password-file ilo.pass
  drover power on bmc7 --driver ipmi --option=-L --option=OPERATOR --password-file bmc.pass
  drover power pxe rack4-n1 --driver exec --program /usr/local/bin/outlet`,
		Args: noSubcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	short := map[ilo.Action]string{
		ilo.Status: "Show whether machines are on", ilo.SwitchOn: "Switch machines on", ilo.SwitchOff: "Switch machines off, at once",
		ilo.Cycle: "Switch machines off and on", ilo.PXE: "Boot machines from the network, once",
	}
	for _, a := range ilo.Actions() {
		cmd.AddCommand((&powerCommand{action: a}).command(short[a]))
	}
	return cmd
}

func (p *powerCommand) command(short string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   string(p.action) + " SELECTOR",
		Short: short,
		Long: short + `.

SELECTOR names nodes of the server, such as m1c1n1,m1c2n1; or it has rules that
must all fit, pool=NAME, chassis=NAME and tag=NAME. With --chassis it names slots,
such as c1n1,c3,5-9 or all; with the drivers redfish, ipmi and exec it is a list of
addresses, or of names for the program.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return p.run(cmd, args[0]) },
	}
	f := cmd.Flags()
	f.StringVar(&p.chassis, "chassis", "", "[NAME=]ADDRESS of the chassis manager; with -c the name of one in the config")
	f.StringVarP(&p.config, "config", "c", "", "take the login of --chassis from this config file")
	f.StringVar(&p.driver, "driver", "", "ssh|rest|redfish|ipmi|exec; default: ssh, or rest for a chassis at https://")
	f.StringVar(&p.program, "program", "", "program of the driver exec, or ipmitool by another name")
	f.StringArrayVar(&p.options, "option", nil, "option for ipmitool; once for each word")
	f.DurationVar(&p.wait, "wait", 2*time.Minute, "longest wait for a machine to be on, or off")
	f.DurationVar(&p.poll, "poll", 5*time.Second, "time between two questions for the state")
	p.bmc.add(cmd, true)
	p.api.apiFlags(cmd)
	_ = cmd.MarkFlagFilename("config", "yaml", "yml")
	outputFlag(cmd, &p.output, "table", "json", "yaml")
	_ = cmd.RegisterFlagCompletionFunc("driver", cobra.FixedCompletions([]string{"ssh", "rest", "redfish", "ipmi", "exec"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (p *powerCommand) run(cmd *cobra.Command, selector string) error {
	if f := cmd.Flags(); !f.Changed("chassis") && !f.Changed("driver") {
		return p.ask(cmd, selector)
	}
	if err := p.check(); err != nil {
		return &exitError{exitUsage, err}
	}
	machines, done, err := p.machines(cmd, selector)
	if err != nil {
		return powerError(err)
	}
	defer done()
	s := ilo.Switcher{Poll: p.poll, Wait: p.wait, Tell: func(machine, command string) {
		fmt.Fprintf(cmd.ErrOrStderr(), "drover: %s: %s\n", machine, command)
	}}
	results := s.Do(cmd.Context(), p.action, machines)
	if err := printAs(cmd.OutOrStdout(), p.output, results, func(w io.Writer) error { return powerTable(w, results) }); err != nil {
		return err
	}
	return powerOutcome(results)
}

// ask has a server do it.
func (p *powerCommand) ask(cmd *cobra.Command, selector string) error {
	o, err := orderOf(p.action, selector)
	switch {
	case err != nil:
	case p.config != "":
		err = errors.New("--config is for --chassis: a server has its own")
	case p.poll <= 0 || p.wait <= 0:
		err = errors.New("--poll and --wait must be more than nothing")
	default:
		err = checkOutput(p.output, "table")
	}
	if err != nil {
		return &exitError{exitUsage, err}
	}
	o.Wait = pools.Duration(p.wait)
	job, err := powerJob(cmd.Context(), &p.api, cmd.ErrOrStderr(), o, min(p.poll, time.Second))
	if err != nil {
		return err
	}
	results := resultsOf(job)
	if err := printAs(cmd.OutOrStdout(), p.output, results, func(w io.Writer) error { return powerTable(w, results) }); err != nil {
		return err
	}
	return powerOutcome(results)
}

// named takes the login of a chassis from the config file.
func (p *powerCommand) named() error {
	farm, err := config.Load(p.config)
	if err != nil {
		return err
	}
	c, ok := farm.Chassis(p.chassis)
	if !ok {
		return fmt.Errorf("--chassis %q: %s has no chassis of that name", p.chassis, p.config)
	}
	scheme := map[pools.Via]string{pools.ViaREST: "https"}[c.Via]
	p.chassis = c.Name + "=" + cmp.Or(scheme, "ssh") + "://" + c.Address
	p.bmc.of(farm, c)
	return nil
}

// check reads the flags.
func (p *powerCommand) check() error {
	at := chassisAt{}
	if p.config != "" {
		if err := p.named(); err != nil {
			return err
		}
	}
	if p.chassis != "" {
		if !strings.Contains(p.chassis, "=") {
			p.chassis = "chassis=" + p.chassis // its name is in no result
		}
		var err error
		if at, err = parseChassis(p.chassis); err != nil {
			return err
		}
	}
	p.driver = at.via(cmp.Or(p.driver, "auto"))
	switch ofChassis := p.driver == "ssh" || p.driver == "rest"; {
	case !ofChassis && p.driver != "redfish" && p.driver != "ipmi" && p.driver != "exec":
		return fmt.Errorf("--driver %q: want ssh, rest, redfish, ipmi or exec", p.driver)
	case ofChassis && p.chassis == "":
		return errors.New("--chassis is missing: which chassis?")
	case !ofChassis && p.chassis != "":
		return fmt.Errorf("--chassis is not for the driver %s: SELECTOR names the machines", p.driver)
	case p.driver == "exec" && p.program == "":
		return errors.New("--program is missing: what is to be run?")
	case p.poll <= 0 || p.wait <= 0:
		return errors.New("--poll and --wait must be more than nothing")
	}
	p.chassis = at.address
	return checkOutput(p.output, "table")
}

// machines finds out what is to be switched. done ends the connections.
func (p *powerCommand) machines(cmd *cobra.Command, selector string) (out []ilo.Machine, done func(), err error) {
	done = func() {}
	if p.driver == "exec" {
		for _, name := range selected(selector) {
			out = append(out, ilo.Machine{Name: name, Power: ilo.HookPower{Program: p.program, Name: name, Timeout: p.bmc.timeout}})
		}
		return out, done, some(out)
	}
	b, err := p.bmc.open(func(format string, args ...any) { fmt.Fprintf(cmd.ErrOrStderr(), "drover: "+format+"\n", args...) })
	if err != nil {
		return nil, done, &exitError{exitUsage, err}
	}
	switch p.driver {
	case "ipmi":
		for _, host := range selected(selector) {
			out = append(out, ilo.Machine{Name: host, Power: ilo.IPMIPower{
				Program: p.program, Host: host, User: p.bmc.user, Password: b.password, Options: p.options, Timeout: p.bmc.timeout,
			}})
		}
		return out, done, some(out)
	case "redfish":
		return p.servers(b, selector)
	}
	sel, err := ilo.ParseSelection(selector)
	if err != nil {
		return nil, done, &exitError{exitUsage, err}
	}
	if p.driver == "rest" {
		return p.restNodes(cmd.Context(), b, sel)
	}
	return p.nodes(cmd.Context(), b, sel)
}

// selected splits a list of names.
func selected(selector string) []string {
	return strings.FieldsFunc(selector, func(r rune) bool { return r == ',' || r == ' ' })
}

// some refuses a selector that selects nothing.
func some(machines []ilo.Machine) error {
	if len(machines) == 0 {
		return &exitError{exitUsage, errors.New("SELECTOR selects no machine")}
	}
	return nil
}

func (p *powerCommand) nodes(ctx context.Context, b *bmcs, sel ilo.Selection) (out []ilo.Machine, done func(), err error) {
	manager := &ilo.Manager{Login: b.login(p.chassis)}
	done = func() { manager.Close() }
	slots, exact := sel.Exact()
	if !exact {
		if slots, err = ilo.Slots(ctx, manager); err != nil {
			done()
			return nil, func() {}, err
		}
	}
	for _, s := range slots {
		if sel.Has(s) {
			out = append(out, ilo.Machine{Name: s.String(), Power: ilo.SlotPower{Runner: manager, Slot: s}})
		}
	}
	return out, done, some(out)
}

func (p *powerCommand) restNodes(ctx context.Context, b *bmcs, sel ilo.Selection) (out []ilo.Machine, done func(), err error) {
	site, err := b.site(p.chassis)
	if err != nil {
		return nil, func() {}, &exitError{exitUsage, err}
	}
	done = func() { site.Close() }
	slots, exact := sel.Exact()
	if !exact {
		if slots, err = ilo.SlotsREST(ctx, site); err != nil {
			done()
			return nil, func() {}, err
		}
	}
	for _, s := range slots {
		if sel.Has(s) {
			out = append(out, ilo.Machine{Name: s.String(), Power: ilo.NodeSystem(site, s)})
		}
	}
	return out, done, some(out)
}

func (p *powerCommand) servers(b *bmcs, selector string) (out []ilo.Machine, done func(), err error) {
	var sites []*ilo.Site
	done = func() {
		for _, s := range sites {
			s.Close()
		}
	}
	for _, host := range selected(selector) {
		site, err := b.site(host)
		if err != nil {
			done()
			return nil, func() {}, &exitError{exitUsage, err}
		}
		sites = append(sites, site)
		out = append(out, ilo.Machine{Name: host, Power: ilo.ServerSystem(site)})
	}
	return out, done, some(out)
}

func powerTable(w io.Writer, results []ilo.Result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "MACHINE\tPOWER\tERROR")
	for _, r := range results {
		fmt.Fprintf(t, "%s\t%s\t%s\n", r.Name, r.State, orDash(r.Error))
	}
	return t.Flush()
}

// powerOutcome is the error of the whole command.
func powerOutcome(results []ilo.Result) error {
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
		return &exitError{exitPartly, errors.Join(errs...)}
	}
	return powerError(errors.Join(errs...))
}

// powerError gives an error of the hardware its exit code.
func powerError(err error) error {
	if _, ok := errors.AsType[*exitError](err); ok {
		return err
	}
	switch {
	case errors.Is(err, ilo.ErrRefused), errors.Is(err, ilo.ErrHostKey):
		return &exitError{exitRefused, err}
	case errors.Is(err, ilo.ErrUnreachable):
		return &exitError{exitUnreachable, err}
	}
	return err
}
