package power

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/cmd/drover/cli/nodeset"
	"drover/hardware"
	"drover/hardware/bmc"
	"drover/hardware/moonshot"
	"drover/pools"
	"drover/pools/config"
)

// target checks the flags, sets the driver, and returns the login.
func (p *powerCommand) target(cmd *cobra.Command) (l bmc.Login, err error) {
	at, open := moonshot.Address{}, p.login.login(cmd)
	switch {
	case p.config != "":
		if at, open, err = p.named(cmd); err != nil {
			return l, err
		}
	case p.chassis != "":
		if !strings.Contains(p.chassis, "=") {
			p.chassis = "chassis=" + p.chassis // its name is in no result
		}
		if at, err = moonshot.ParseAddress(p.chassis); err != nil {
			return l, err
		}
	}
	p.driver = string(at.Choose(cmp.Or(p.driver, "auto")))
	switch {
	case !p.ofChassis() && p.driver != "redfish" && p.driver != "ipmi" && p.driver != "exec":
		return l, fmt.Errorf("--driver %q: want ssh, rest, redfish, ipmi or exec", p.driver)
	case p.ofChassis() && p.chassis == "":
		return l, errors.New("--chassis is missing: which chassis?")
	case !p.ofChassis() && p.chassis != "":
		return l, fmt.Errorf("--chassis is not for the driver %s: SELECTOR names the machines", p.driver)
	case p.system != "" && p.driver != "redfish", p.uefi && p.driver != "ipmi":
		return l, fmt.Errorf("--system is for the driver redfish, and --uefi for ipmi, not for %s", p.driver)
	case p.driver == "exec" && p.program == "":
		return l, errors.New("--program is missing: what is to be run?")
	}
	if err := p.check(); err != nil {
		return l, err
	}
	if p.driver == "exec" {
		return bmc.Login{Timeouts: bmc.Timeouts{Command: p.login.timeout}}, nil
	}
	l, err = open()
	l.Address = cmp.Or(at.Host, l.Address)
	return l, err
}

// named returns the address and the login of a chassis of the config file.
func (p *powerCommand) named(cmd *cobra.Command) (at moonshot.Address, open func() (bmc.Login, error), err error) {
	farm, err := config.Load(p.config)
	if err != nil {
		return at, nil, err
	}
	c, ok := farm.Chassis(p.chassis)
	if !ok {
		return at, nil, fmt.Errorf("--chassis %q: %s has no chassis of that name", p.chassis, p.config)
	}
	return moonshot.Address{Name: c.Name, Via: c.Via, Host: c.Address}, func() (bmc.Login, error) {
		l, err := p.login.base(cmd)()
		if err != nil {
			return l, err
		}
		return l.ForChassis(farm, c)
	}, nil
}

// chassisMachines returns the slots of a chassis.
func (p *powerCommand) chassisMachines(ctx context.Context, l bmc.Login, selector string) (out []bmc.Machine, done func(), err error) {
	done = func() {}
	sel, err := pools.ParseSelection(selector)
	if err != nil {
		return nil, done, &cli.Error{Code: cli.Usage, Err: err}
	}
	m, err := moonshot.Open(l, pools.Via(p.driver))
	if err != nil {
		return nil, done, &cli.Error{Code: cli.Usage, Err: err}
	}
	slots, exact := sel.Exact()
	if !exact {
		if slots, err = m.Slots(ctx); err != nil {
			return nil, m.Close, err
		}
	}
	for _, s := range slots {
		if sel.Has(s) {
			out = append(out, bmc.Machine{Name: s.String(), Driver: m.Driver(s)})
		}
	}
	return out, m.Close, nil
}

// bmcMachines returns machines with a BMC of their own.
func (p *powerCommand) bmcMachines(l bmc.Login, selector string) (out []bmc.Machine, done func(), err error) {
	var closers []func()
	done = func() {
		for _, c := range closers {
			c()
		}
	}
	names, err := nodeset.Expand(selector)
	if err != nil {
		return nil, done, &cli.Error{Code: cli.Usage, Err: err}
	}
	power := pools.NodePower{Driver: pools.PowerDriver(p.driver), System: p.system, Program: p.program, Options: p.options}
	uefi := func() (uefi, known bool) { return p.uefi, p.uefi }
	for _, name := range names {
		l.Address = name
		d, closer, err := hardware.Driver(power, l, uefi)
		if err != nil {
			return nil, done, &cli.Error{Code: cli.Usage, Err: err}
		}
		closers = append(closers, closer)
		out = append(out, bmc.Machine{Name: name, Driver: d})
	}
	return out, done, nil
}
