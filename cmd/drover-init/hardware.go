package main

import (
	"context"
	"reflect"
	"time"

	"drover/node/inventory"
	"drover/node/lldp"
	"drover/pools"
)

// inventoryTry is the limit of one report of the hardware.
const inventoryTry = 5 * time.Second

// listen begins to listen for switches. It takes all cards up: they hear nothing before, and
// have no carrier.
func (b *boot) listen() {
	l, err := lldp.Listen()
	if err != nil {
		b.con.Printf("inventory", "switches are not heard: %v", err)
		return
	}
	b.switches = l
	b.net.Wake()
}

// hardware returns the inventory of the machine, with the switches that were heard so far.
func (b *boot) hardware() pools.Inventory {
	v := inventory.Collect("/")
	if b.switches == nil {
		return v
	}
	heard := b.switches.Heard()
	for i, n := range v.NICs {
		if at, ok := heard[n.Name]; ok {
			v.NICs[i].LLDP = &at
		}
	}
	return v.Clean()
}

// sendInventory reports the hardware of the machine. An error does not end the boot, which
// does not need it.
func (b *boot) sendInventory(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, inventoryTry)
	defer cancel()
	v := b.hardware()
	if err := b.srv.SendInventory(ctx, v); err != nil {
		b.con.Printf("inventory", "not reported: %v", err)
		return nil
	}
	b.con.Printf("inventory", "%s", v)
	b.reported = &v
	return nil
}

// sendNeighbours reports the hardware anew if a switch has announced itself, or a link came
// up, while the image was fetched: switches do so every 30 s.
func (b *boot) sendNeighbours(ctx context.Context) error {
	if b.switches == nil {
		return nil
	}
	changed := b.reported != nil && !reflect.DeepEqual(b.hardware().NICs, b.reported.NICs)
	var err error
	if changed {
		err = b.sendInventory(ctx)
	}
	_ = b.switches.Close() // a socket
	b.switches = nil
	return err
}
