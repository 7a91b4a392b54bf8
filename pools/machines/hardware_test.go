package machines_test

import (
	"net/netip"
	"testing"
	"time"

	"drover/pools"
	"drover/pools/machines"
	"drover/pools/resolve"
)

// TestHardware: a machine lands in the pool that matches its hardware in the first boot after
// it reported that, not before.
func TestHardware(t *testing.T) {
	link := addr("10.0.0.1")
	pool := func(name string, m pools.Match, first, last string) pools.Pool {
		return pools.Pool{Name: name, CatchAll: true, Match: m, Range: span(first, last)}
	}
	farm := resolve.NewFarm(resolve.Checked{Config: pools.Config{
		Subnets: []pools.Subnet{{CIDR: netip.MustParsePrefix("10.0.0.0/16")}},
		Pools: []pools.Pool{
			pool("serial", pools.Match{Serial: "CZ12*"}, "10.0.2.1", "10.0.2.9"),
			pool("port", pools.Match{DMI: "HPE ProLiant *", LLDP: "leaf-7 ge-0/0/*"}, "10.0.3.1", "10.0.3.9"),
			pool("kind", pools.Match{DMI: "HPE ProLiant *"}, "10.0.4.1", "10.0.4.9"),
			pool("lobby", pools.Match{}, "10.0.5.1", "10.0.5.9"),
		},
	}})
	reported := func(v pools.Inventory) unknownList { return unknownList{{MAC: mac(9), Inventory: &v}} }
	at := func(system, port string) []pools.InventoryNIC {
		return []pools.InventoryNIC{{Name: "eth0"}, {Name: "eth1", LLDP: &pools.Neighbour{System: system, Chassis: "02:00:00:00:00:01", Port: port}}}
	}
	m710 := pools.Inventory{Vendor: "HPE", Product: "ProLiant m710x", NICs: at("leaf-7", "ge-0/0/7")}
	firmware, system := resolve.Query{MAC: mac(9), Link: link, Firmware: pools.UEFIx64}, resolve.Query{MAC: mac(9), Link: link}
	leased := []pools.Lease{{MAC: mac(9), Address: addr("10.0.5.1"), Node: pools.CatchAllName(mac(9)), Pool: "lobby", Expires: noon.Add(time.Hour)}}
	for _, tt := range []struct {
		name   string
		known  unknownList
		leases []pools.Lease
		q      resolve.Query
		want   string
	}{
		{"nothing is known of it", nil, nil, firmware, "lobby"},
		{"it has reported nothing", unknownList{{MAC: mac(9)}}, nil, firmware, "lobby"},
		{"another machine has reported", unknownList{{MAC: mac(8), Inventory: &m710}}, nil, firmware, "lobby"},
		{"its switch", reported(m710), nil, firmware, "port"},
		{"another switch", reported(pools.Inventory{Vendor: "HPE", Product: "ProLiant m710x", NICs: at("leaf-8", "ge-0/0/7")}), nil, firmware, "kind"},
		{"no switch", reported(pools.Inventory{Vendor: "HPE", Product: "ProLiant m710x"}), nil, firmware, "kind"},
		{"another vendor", reported(pools.Inventory{Vendor: "Dell Inc.", NICs: m710.NICs}), nil, firmware, "lobby"},
		{"its serial number", reported(pools.Inventory{Serial: "CZ1234"}), nil, firmware, "serial"},
		{"the rest of the boot that it reported in", reported(m710), leased, system, "lobby"},
		{"the next boot", reported(m710), leased, firmware, "port"},
		{"HTTP, in the boot that it reported in", reported(m710), leased, resolve.Query{MAC: mac(9)}, "lobby"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := &machines.Directory{
				Farm: live{farm}, Leases: &leaseTable{all: tt.leases}, Boots: bootTable{}, Unknowns: tt.known, Now: func() time.Time { return noon },
			}
			if p := d.Resolve(tt.q); p == nil || p.Pool != tt.want {
				t.Errorf("got %s, want pool %s", describe(p), tt.want)
			}
		})
	}
}
