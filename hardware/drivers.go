package hardware

import (
	"cmp"
	"path/filepath"
	"strings"

	"drover/hardware/bmc"
	"drover/hardware/moonshot"
	"drover/hardware/redfish"
	"drover/pools"
	"drover/pools/resolve"
)

// Driver returns the power driver of a machine with a BMC of its own. The address of
// the login is that of the BMC; for [pools.Exec] it is the name that the program gets.
// Driver, System, Program and Options of p are used, and uefi is that of [bmc.IPMI]. Call done after
// use.
func Driver(p pools.NodePower, l bmc.Login, uefi func() (uefi, known bool)) (d bmc.Driver, done func(), err error) {
	done = func() {}
	switch p.Driver {
	case pools.Redfish:
		c, err := redfish.Open(l)
		if err != nil {
			return nil, done, err
		}
		return &redfish.System{Client: c, Name: p.System}, c.Close, nil
	case pools.IPMI:
		d := bmc.IPMI{Program: p.Program, Host: l.Address, User: l.User, Password: l.Password, Options: p.Options, UEFI: uefi, Timeout: l.Timeouts.Command}
		return d, done, nil
	}
	return bmc.Program{Path: p.Program, Name: l.Address, Timeout: l.Timeouts.Command}, done, nil
}

// open opens the manager of a chassis of the config.
func (s *Service) open(farm *resolve.Farm, c pools.Chassis) (*moonshot.Manager, error) {
	login, err := s.Login.ForChassis(farm, c)
	if err != nil {
		return nil, err
	}
	return moonshot.Open(login, c.Via)
}

// drivers returns the drivers of a target's machines.
func (s *Service) drivers(farm *resolve.Farm, t *target) (out []bmc.Driver, done func(), err error) {
	if t.chassis != nil {
		m, err := s.open(farm, *t.chassis)
		if err != nil {
			return nil, func() {}, err
		}
		for _, slot := range t.slots {
			out = append(out, m.Driver(slot))
		}
		return out, m.Close, nil
	}
	p, login := *t.node.Power, s.Login
	login.Address = cmp.Or(p.Address, t.node.Name)
	if p.Driver != pools.Exec {
		if login, err = login.ForNode(farm, &p); err != nil {
			return nil, func() {}, err
		}
	}
	p.Program = programPath(farm, p.Program)
	d, done, err := Driver(p, login, func() (uefi, known bool) { return s.bootsByUEFI(t.node) })
	return []bmc.Driver{d}, done, err
}

// bootsByUEFI reports whether a node boots by UEFI, as its firmware said in its last boot.
func (s *Service) bootsByUEFI(n pools.NodeInfo) (uefi, known bool) {
	if s.Firmware == nil {
		return false, false
	}
	for _, mac := range n.MACs {
		if f := s.Firmware(mac); f != "" {
			return strings.HasPrefix(string(f), "uefi-"), true
		}
	}
	return false, false
}

// programPath returns the absolute path of a program. A name with a slash is relative
// to the config file. A name without a slash is returned unchanged, for PATH.
func programPath(farm *resolve.Farm, name string) string {
	if !strings.Contains(name, "/") {
		return name
	}
	if path, err := filepath.Abs(farm.Path(name)); err == nil {
		return path // a name without a slash would be searched for in PATH
	}
	return farm.Path(name)
}
