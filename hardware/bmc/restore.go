package bmc

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// pxe boots all machines from the network.
//
// Nothing is switched off before the boot source is confirmed. Some firmware forgets it when the
// machine is switched off, and IPMI voids it after a minute: it is therefore set again while
// the machine is off.
func (b *batch) pxe(ctx context.Context) {
	set := func(i int, m Machine) error {
		undo, err := m.Driver.PXEOnce(ctx)
		if err == nil && b.undo[i] == nil {
			if b.undo[i] = undo; undo == nil {
				b.undo[i] = func(context.Context) error { return errors.New("its driver cannot do that") }
			}
		}
		return err
	}
	wasOff := make([]bool, len(b.results))
	for i, r := range b.results {
		wasOff[i] = r.State == Off
	}
	b.each(ctx, "pxe once", set)
	b.reach(ctx, Off)
	copy(b.left, wasOff)
	b.each(ctx, "pxe once", set)
	clear(b.left)
	b.restoreBoot(ctx)
	b.onAgain(ctx)
	b.restoreBoot(ctx)
}

// restoreTime bounds what is restored after an interrupt.
const restoreTime = 10 * time.Second

// Restoring returns a context to restore what an action has changed: ctx, or for a short time another
// one when ctx has ended.
func Restoring(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Err() == nil {
		return ctx, func() {}
	}
	return context.WithTimeout(context.WithoutCancel(ctx), restoreTime)
}

// restoreBoot restores the boot source of the machines with an error, also after an interrupt.
func (b *batch) restoreBoot(ctx context.Context) {
	ctx, cancel := Restoring(ctx)
	defer cancel()
	for i, m := range b.machines {
		r := &b.results[i]
		if r.Err == nil || b.undo[i] == nil {
			continue
		}
		if b.OnCommand != nil {
			b.OnCommand(m.Name, "pxe undone")
		}
		if err := b.undo[i](ctx); err != nil {
			r.Err = fmt.Errorf("%w; that it boots from the network once could not be taken back: %w", r.Err, err)
		}
		b.undo[i] = nil
	}
}

// onAgain switches on the machines that the action has switched off, those with an error among
// them if they were on before.
func (b *batch) onAgain(ctx context.Context) {
	for i := range b.results {
		if r := &b.results[i]; r.Err != nil && b.wasOn[i] && ctx.Err() == nil {
			b.failed[i], r.Err = r.Err, nil
		}
	}
	b.reach(ctx, On)
	for i, failed := range b.failed {
		switch r := &b.results[i]; {
		case failed == nil:
		case r.Err != nil:
			r.Err = fmt.Errorf("%w; it was on, and could not be switched on again: %w", failed, r.Err)
		default:
			r.Err = failed
		}
		b.failed[i] = nil
	}
}
