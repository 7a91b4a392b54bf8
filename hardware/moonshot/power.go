package moonshot

import (
	"context"
	"fmt"
	"strings"

	"drover/hardware/bmc"
	"drover/pools"
)

// slotDriver is the [bmc.Driver] of a node over the command line of its chassis.
type slotDriver struct {
	manager *Manager
	slot    pools.Slot
}

// State runs "show node power".
func (p slotDriver) State(ctx context.Context) (bmc.State, error) {
	text, err := p.manager.run(ctx, "show node power "+p.slot.String())
	if err != nil {
		return bmc.Unknown, err
	}
	return parsePower(text, p.slot)
}

// parsePower reads the answer to "show node power" for one node.
func parsePower(text string, slot pools.Slot) (bmc.State, error) {
	if len(text) > bmc.MaxAnswer {
		return bmc.Unknown, fmt.Errorf("%w: %d bytes for a power state", bmc.ErrUnreadable, len(text))
	}
	lines := clean(text)
	q := parser{nodes: map[pools.Slot]*found{}}
	f := q.at(slot)
	q.blocks(lines)
	if f.node.Power == bmc.Unknown {
		if err := refusal(lines); err != nil {
			return bmc.Unknown, err
		}
	}
	return f.node.Power, nil
}

// On runs "set node power on".
func (p slotDriver) On(ctx context.Context) error { return p.set(ctx, "power on") }

// Off runs "set node power off force". Without force the manager asks the operating
// system, which may not respond.
func (p slotDriver) Off(ctx context.Context) error { return p.set(ctx, "power off force") }

// PXEOnce runs "set node bootonce pxe", which prints the boot source that it has set. No published
// command takes that back.
func (p slotDriver) PXEOnce(ctx context.Context) (undo func(context.Context) error, err error) {
	text, err := p.manager.run(ctx, "set node bootonce pxe "+p.slot.String())
	if err != nil {
		return nil, err
	}
	lines := clean(text)
	if err := refusal(lines); err != nil {
		return nil, err
	}
	for _, l := range lines {
		if strings.Contains(lower(l.String()), "bootonce: pxe") {
			return nil, nil
		}
	}
	return nil, fmt.Errorf("%w: %s: the chassis does not say that it boots from the network once", bmc.ErrUnreadable, p.slot)
}

func (p slotDriver) set(ctx context.Context, what string) error {
	text, err := p.manager.run(ctx, "set node "+what+" "+p.slot.String())
	if err != nil {
		return err
	}
	return refusal(clean(text))
}
