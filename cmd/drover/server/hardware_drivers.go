package server

import (
	"path/filepath"
	"strings"

	"drover/pools"
	"drover/pools/ilo"
)

// machines opens the drivers of a target. done ends the connections.
func (a access) machines(t *target) (out []ilo.Machine, done func(), err error) {
	done = func() {}
	switch {
	case t.chassis == nil:
		return a.machine(t.node)
	case t.chassis.Via == pools.ViaREST:
		site, err := a.site(*t.chassis)
		if err != nil {
			return nil, done, err
		}
		for _, s := range t.slots {
			out = append(out, ilo.Machine{Power: ilo.NodeSystem(site, s)})
		}
		return out, func() { site.Close() }, nil
	}
	login, err := a.login(*t.chassis)
	if err != nil {
		return nil, done, err
	}
	manager := &ilo.Manager{Login: login}
	for _, s := range t.slots {
		out = append(out, ilo.Machine{Power: ilo.SlotPower{Runner: manager, Slot: s}})
	}
	return out, func() { manager.Close() }, nil
}

// machine opens the driver of a machine with a management processor of its own.
func (a access) machine(n pools.NodeInfo) (out []ilo.Machine, done func(), err error) {
	p, done := n.Power, func() {}
	switch p.Driver {
	case pools.Redfish:
		site, err := a.bmc(p)
		if err != nil {
			return nil, done, err
		}
		return []ilo.Machine{{Power: ilo.ServerSystem(site)}}, func() { site.Close() }, nil
	case pools.IPMI:
		password, err := a.secret(p.PasswordFile)
		user := p.User
		if user == "" {
			user = DefaultUser
		}
		return []ilo.Machine{{Power: ilo.IPMIPower{
			Program: a.program(p.Program), Host: p.Address, User: user, Password: password, Options: p.Options, Timeout: a.timeouts.Command,
		}}}, done, err
	}
	name := p.Address
	if name == "" {
		name = n.Name
	}
	return []ilo.Machine{{Power: ilo.HookPower{Program: a.program(p.Program), Name: name, Timeout: a.timeouts.Command}}}, done, nil
}

// program is looked for in PATH, or beside the config when it has a slash.
func (a access) program(name string) string {
	if !strings.Contains(name, "/") {
		return name
	}
	if path, err := filepath.Abs(a.farm.Path(name)); err == nil {
		return path // a name without a slash would be looked for in PATH
	}
	return a.farm.Path(name)
}
