package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"time"

	"drover/e2e/lab"
	"drover/pools"
	"drover/pools/boots"
	"drover/pools/resolve"
)

// machine is one of the three machines, with its plan and its progress.
type machine struct {
	lab.Machine
	what string // description for the output

	guest *lab.Guest
	plan  *resolve.Plan // what the farm says

	boot  boots.Record // its timeline, as drover tells it
	shown int          // how many of its steps were printed
	state string       // why it is not done
	done  bool         // Ready in its own cluster, and its pod runs
}

// mac is the address that the machine boots with.
func (m *machine) mac() string {
	for _, nic := range m.NICs {
		if nic.Boot {
			return nic.MAC
		}
	}
	return ""
}

// rackful returns the machines. Only their MACs connect them to the farm.
func rackful() []*machine {
	return []*machine{
		{
			what: "BIOS, iPXE in its network card",
			Machine: lab.Machine{Name: "bios", Firmware: lab.BIOS, NICs: []lab.NIC{
				{MAC: "52:54:00:77:00:0a", Boot: true},
			}},
		},
		{
			// The first card has a link, but to a segment without a server:
			// a firmware or an init that tries it first gets nowhere.
			what: "UEFI, two network cards of which the second boots",
			Machine: lab.Machine{Name: "uefi", Firmware: lab.UEFI, NICs: []lab.NIC{
				{MAC: "52:54:00:77:00:b1", Dark: true},
				{MAC: "52:54:00:77:00:b2", Boot: true},
			}},
		},
		{
			what: "BIOS, a MAC that no config names",
			Machine: lab.Machine{Name: "stray", Firmware: lab.BIOS, NICs: []lab.NIC{
				{MAC: "52:54:00:77:00:0c", Boot: true},
			}},
		},
	}
}

// readAdded reads the node that is added over the API.
func readAdded(path string) (n pools.PoolNode, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return n, err
	}
	if err := json.Unmarshal(b, &n); err != nil {
		return n, fmt.Errorf("%s: %w", path, err)
	}
	return n, nil
}

// powerOn adds a node over the REST API while the server runs, asks the farm
// what is to become of each machine, and switches them on.
func (d *demo) powerOn(ctx context.Context, added pools.PoolNode) error {
	nodes, err := d.add(ctx, added)
	if err != nil {
		return err
	}
	for _, m := range rackful() {
		if m.plan, err = d.Expect(m.mac(), nodes...); err != nil {
			return err
		}
		if m.plan == nil {
			return fmt.Errorf("the farm has no place for %s: no node has this MAC, and there is no catch-all pool", m.mac())
		}
		if m.plan.Cluster == "" {
			return fmt.Errorf("the farm lets %s join no cluster", m.mac())
		}
		m.boot.Started = time.Now()
		if m.guest, err = d.PowerOn(m.Machine); err != nil {
			return err
		}
		d.machines = append(d.machines, m)
		d.log.say("power on %s (%s): %s is to become %s in %s", m.Name, m.what, m.mac(), m.plan.Node, m.plan.Cluster)
	}
	return nil
}

// add POSTs a node, and returns what the API added to the farm. A node that
// the edited file declares by now is the file's.
func (d *demo) add(ctx context.Context, n pools.PoolNode) ([]pools.PoolNode, error) {
	for _, mac := range n.MACs {
		if plan, err := d.Expect(mac.String()); err != nil {
			return nil, err
		} else if plan != nil && !plan.CatchAll {
			d.log.say("%s is declared in the file as node %s: nothing to add over the API", mac, plan.Node)
			return nil, nil
		}
	}
	body, err := json.Marshal(n)
	if err != nil {
		return nil, err
	}
	d.log.say("POST /api/v1/nodes %s", body)
	if err := d.Drover.Call(ctx, http.MethodPost, "/api/v1/nodes", n, nil); err != nil {
		return nil, err
	}
	return []pools.PoolNode{n}, nil
}
