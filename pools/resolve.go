package pools

import "maps"

// Resolve answers the one question: what is this machine to do? It returns nil
// when the machine is none of ours. It is safe for concurrent use.
func (f *Farm) Resolve(q Query) *Plan {
	e := f.byMAC[q.MAC]
	if e == nil {
		if f.catchall == nil || q.MAC.IsZero() {
			return nil
		}
		return f.plan(f.catchall, q, catchAllName(q.MAC), []MAC{q.MAC})
	}
	return f.plan(e, q, e.Name, e.MACs)
}

func (f *Farm) plan(e *entry, q Query, name string, macs []MAC) *Plan {
	pool := &f.Config.Pools[e.pool]
	p := &Plan{
		Node: name, MAC: q.MAC, MACs: macs,
		Pool: pool.Name, CatchAll: e == f.catchall, Cluster: pool.Cluster, Image: pool.Image,
		Address: e.IP, Subnet: f.Config.Subnets[e.subnet],
		Boot:    BootTarget{Server: f.address, File: f.bootFile(q)},
		Options: e.profile.options, Settings: e.profile.Settings,
		farm: f, entry: e, query: q,
	}
	if p.CatchAll {
		p.Range = pool.Range
	}
	p.Lease = p.Subnet.Lease
	if pool.Lease != 0 {
		p.Lease = pool.Lease
	}
	return p
}

// bootFile is what the asking program loads next: iPXE its script, UEFI HTTP
// Boot a loader by URL, other firmware a loader by TFTP, and a plain DHCP
// client nothing.
func (f *Farm) bootFile(q Query) string {
	switch {
	case q.IPXE:
		return f.url + ScriptPath + q.MAC.Dashed()
	case q.Firmware.HTTP():
		return f.url + LoaderPath + q.Firmware.Loader()
	}
	return q.Firmware.Loader()
}

// Why tells where each value of the plan was set.
func (p *Plan) Why() Why {
	f, e := p.farm, p.entry
	pool := f.poolPath(e.pool)
	why := maps.Clone(e.profile.why)
	why["pool"] = f.at(pool)
	why["image"] = f.at(pool + ".image")
	if p.Cluster != "" {
		why["cluster"] = f.at(pool + ".cluster")
	}
	why["subnet"] = f.at(f.subnetPath(e.subnet))
	why["lease"] = f.at(f.subnetPath(e.subnet) + ".lease")
	if f.Config.Pools[e.pool].Lease != 0 {
		why["lease"] = f.at(pool + ".lease")
	}
	switch {
	case p.CatchAll:
		why["node"] = Origin{Path: "made from the MAC"}
		why["macs"] = Origin{Path: "the MAC that asks"}
		why["range"] = f.at(pool + ".range")
	case e.path == "":
		why["node"], why["macs"], why["address"] = e.Source, e.Source, e.Source
	default:
		why["node"], why["macs"], why["address"] = f.at(e.path+".name"), f.at(e.path+".macs"), f.at(e.path+".ip")
	}
	why["boot.server"] = f.at("server.address")
	if s := f.Config.Server; !s.Address.IsValid() && len(s.Interfaces) > 0 {
		why["boot.server"] = Origin{Path: "first address of " + s.Interfaces[0]}
	}
	switch {
	case p.query.IPXE:
		why["boot.file"] = Origin{Path: "boot script, for iPXE"}
	case p.Boot.File != "":
		why["boot.file"] = Origin{Path: "loader for " + string(p.query.Firmware)}
	}
	return why
}
