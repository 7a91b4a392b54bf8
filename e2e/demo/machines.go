package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"

	"drover/e2e/demo/watch"
	"drover/e2e/lab"
	"drover/pools"
)

// rackful returns the machines.
func rackful() []*watch.Machine {
	return []*watch.Machine{
		{
			What: "BIOS, iPXE in its network card",
			Machine: lab.Machine{Name: "bios", Firmware: lab.BIOS, NICs: []lab.NIC{
				{MAC: "52:54:00:77:00:0a", Boot: true},
			}},
		},
		{
			// The first card has a link, but to a segment without a server:
			// a firmware or an init that tries it first gets nowhere.
			What: "UEFI, two network cards of which the second boots",
			Machine: lab.Machine{Name: "uefi", Firmware: lab.UEFI, NICs: []lab.NIC{
				{MAC: "52:54:00:77:00:b1", Dark: true},
				{MAC: "52:54:00:77:00:b2", Boot: true},
			}},
		},
		{
			What: "BIOS, a MAC that no config names",
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
		if m.Plan, err = d.Expect(m.MAC(), nodes...); err != nil {
			return err
		}
		if err := d.watch.PowerOn(m); err != nil {
			return err
		}
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
			d.log.Say("%s is declared in the file as node %s: nothing to add over the API", mac, plan.Node)
			return nil, nil
		}
	}
	body, err := json.Marshal(n)
	if err != nil {
		return nil, err
	}
	d.log.Say("POST /api/v1/nodes %s", body)
	if err := d.Drover.Call(ctx, http.MethodPost, "/api/v1/nodes", n, nil); err != nil {
		return nil, err
	}
	return []pools.PoolNode{n}, nil
}
