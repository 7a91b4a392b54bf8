package redfish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"drover/hardware/bmc"
	"drover/internal/wait"
)

// override is the boot source of the next boot.
type override struct{ target, enabled, mode string }

func overrideOf(t Tree) override {
	b := t.Get("Boot")
	return override{b.Get("BootSourceOverrideTarget").Text(), b.Get("BootSourceOverrideEnabled").Text(), b.Get("BootSourceOverrideMode").Text()}
}

// active reports whether the override changes the next boot.
func (o override) active() bool {
	return o.target != "" && o.enabled != "" && !strings.EqualFold(o.target, "none") && !strings.EqualFold(o.enabled, "disabled")
}

// pxeOnce reports whether the override is the one boot from the network, in the boot mode of the
// machine.
func (o override) pxeOnce(mode string) bool {
	return strings.EqualFold(o.target, "pxe") && strings.EqualFold(o.enabled, "once") && sameMode(o.mode, mode)
}

// same reports whether two overrides have the same effect.
func (o override) same(p override) bool {
	if !sameMode(o.mode, p.mode) || o.active() != p.active() {
		return false
	}
	return !o.active() || strings.EqualFold(o.target, p.target) && strings.EqualFold(o.enabled, p.enabled)
}

// sameMode reports whether two boot modes, UEFI or Legacy, are the same as far as the system tells.
func sameMode(a, b string) bool { return a == "" || b == "" || strings.EqualFold(a, b) }

func (o override) String() string {
	text := fmt.Sprintf("target %q, enabled %q", o.target, o.enabled)
	if o.mode != "" {
		text += fmt.Sprintf(", mode %q", o.mode)
	}
	return text
}

// body returns the change that sets the override, with the boot mode or without.
func (o override) body(withMode bool) map[string]any {
	b := map[string]string{"BootSourceOverrideTarget": o.target, "BootSourceOverrideEnabled": o.enabled}
	if withMode && o.mode != "" {
		b["BootSourceOverrideMode"] = o.mode
	}
	return map[string]any{"Boot": b}
}

// Readings of the override until a change must be seen, [bmc.Timeouts].Backoff apart: some firmware
// shows it late.
const confirmTries = 10

// PXEOnce sets the override of the boot source where the system has it: in its settings
// resource (DSP0266, 9.10), if it has one, else in the system itself. It returns when the override
// is seen there.
func (p *System) PXEOnce(ctx context.Context) (undo func(context.Context) error, err error) {
	d, err := p.get(ctx)
	if err != nil {
		return nil, err
	}
	var places []string
	if settings := d.Get("@Redfish.Settings", "SettingsObject").link(); settings != "" {
		places = append(places, settings)
	}
	places = append(places, p.Path)
	var all error
	for i := 0; i < len(places); i++ {
		undo, err := p.setPXE(ctx, places[i])
		if err == nil {
			return undo, nil
		}
		all = joined(all, err)
		if !errors.Is(err, bmc.ErrRejected) && !errors.Is(err, errMissing) {
			break // no other place changes that
		}
		if i == 0 && len(places) == 1 && strings.Contains(err.Error(), "FutureStateURI") {
			places = append(places, strings.TrimSuffix(p.Path, "/")+"/SD") // AMI; the system does not declare it
		}
	}
	return nil, all
}

// joined adds an error to those before it, in one line.
func joined(all, err error) error {
	if all == nil {
		return err
	}
	return fmt.Errorf("%w; %w", all, err)
}

// seen are the overrides in the resource that takes changes and in the system: a pending change is
// seen in the former alone.
type seen struct{ here, system override }

func (p *System) seen(ctx context.Context, at string) (v seen, here document, err error) {
	if here, err = p.Client.document(ctx, at); err != nil {
		return v, here, err
	}
	v.here, v.system = overrideOf(here.Tree), overrideOf(here.Tree)
	if at != p.Path {
		d, err := p.get(ctx)
		if err != nil {
			return v, here, err
		}
		v.system = overrideOf(d.Tree)
	}
	return v, here, nil
}

// restored reports whether v has the effect of the overrides before a change. The system may follow
// its settings at the next boot alone, but it must not boot from the network.
func (v seen) restored(before seen) bool {
	return v.here.same(before.here) && (v.system.same(before.system) || !strings.EqualFold(v.system.target, "pxe"))
}

// setPXE sets the override in the resource at a path and confirms it. With an error the override is
// as it was.
func (p *System) setPXE(ctx context.Context, at string) (undo func(context.Context) error, err error) {
	before, d, err := p.seen(ctx, at)
	if err != nil {
		return nil, err
	}
	if d.Get("Boot").v == nil && at != p.Path { // settings that show pending values alone
		system, err := p.get(ctx)
		if err != nil {
			return nil, err
		}
		d.Tree = system.Tree
	}
	if d.Get("Boot").v == nil {
		return nil, fmt.Errorf("%w: %s: %s has no boot source to set", bmc.ErrRejected, p.Client.Address, at)
	}
	words, err := pxeWords(d.Tree)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", bmc.ErrRejected, p.Client.Address, err)
	}
	mode := cmp.Or(before.here.mode, before.system.mode)
	body, refused := p.patch(ctx, d, words, mode)
	if refused == nil || errors.Is(refused, bmc.ErrRejected) {
		err = p.confirm(ctx, at, mode, refused)
	} else {
		err = refused
	}
	if err == nil {
		return func(ctx context.Context) error { return p.restore(ctx, at, before) }, nil
	}
	if m := p.Client.says(body); refused == nil && m != "" {
		err = fmt.Errorf("%w (%s)", err, m)
	}
	ctx, cancel := bmc.Restoring(ctx)
	defer cancel()
	if certain(refused) {
		if now, _, failed := p.seen(ctx, at); failed == nil && now.restored(before) {
			return nil, err // nothing was changed
		}
	}
	if again := p.restore(ctx, at, before); again != nil {
		err = fmt.Errorf("%w; its boot source could not be restored: %w", err, again)
	}
	return nil, err
}

// patch sends the change, until the service accepts one of its forms. Some services require the
// boot mode, or reset it when it is missing; others do not take it. The error has the refusals of the
// first form and of the last one.
func (p *System) patch(ctx context.Context, d document, words []string, mode string) (body []byte, err error) {
	var first error
	for _, word := range words {
		for _, withMode := range []bool{true, false} {
			if withMode && mode == "" {
				continue
			}
			in := override{word, "Once", mode}.body(withMode)
			body, err = p.Client.change(ctx, message{method: http.MethodPatch, path: d.path, in: in}, d)
			if err == nil || !errors.Is(err, bmc.ErrRejected) || !certain(err) || errors.Is(err, errMissing) {
				return body, err
			}
			first = cmp.Or(first, err)
		}
	}
	if first.Error() != err.Error() {
		err = joined(first, err)
	}
	return body, err
}

// certain reports whether an error says that a change was not made.
func certain(err error) bool {
	return !errors.Is(err, errUncertain) && (errors.Is(err, bmc.ErrRejected) || errors.Is(err, bmc.ErrRefused))
}

// until reads the overrides until ok, for a while unless once, and returns what it saw last. Some
// firmware shows a change late.
func (p *System) until(ctx context.Context, at string, once bool, ok func(seen) bool) (v seen, done bool, err error) {
	for try := 1; ; try++ {
		if v, _, err = p.seen(ctx, at); err == nil && ok(v) {
			return v, true, nil
		}
		if once || try == confirmTries {
			return v, false, err
		}
		if err := wait.Sleep(ctx, p.Client.Timeouts.Backoff); err != nil {
			return v, false, err
		}
	}
}

// confirm waits until the override is seen. What is seen counts, also after a refused change.
func (p *System) confirm(ctx context.Context, at, mode string, refused error) error {
	now, ok, err := p.until(ctx, at, certain(refused), func(v seen) bool { return v.here.pxeOnce(mode) || v.system.pxeOnce(mode) })
	switch {
	case ok:
		return nil
	case refused != nil || err != nil:
		return cmp.Or(refused, err)
	}
	return fmt.Errorf("%w: %s: it was told to boot from the network once, and says %s", bmc.ErrRejected, p.Client.Address, now.here)
}

// restore sets the override that was there before. It does so even when that is seen: a change may
// take effect later.
func (p *System) restore(ctx context.Context, at string, before seen) error {
	old := before.here
	old.target, old.enabled, old.mode = cmp.Or(old.target, "None"), cmp.Or(old.enabled, "Disabled"), cmp.Or(old.mode, before.system.mode)
	var refused error
	for _, in := range []map[string]any{old.body(true), old.body(false), {"Boot": map[string]string{"BootSourceOverrideEnabled": old.enabled}}} {
		d, err := p.Client.document(ctx, at)
		if err != nil {
			return err
		}
		if _, refused = p.Client.change(ctx, message{method: http.MethodPatch, path: at, in: in}, d); !errors.Is(refused, bmc.ErrRejected) {
			break
		}
	}
	now, ok, err := p.until(ctx, at, certain(refused), func(v seen) bool { return v.restored(before) })
	switch {
	case ok:
		return nil
	case refused != nil || err != nil:
		return cmp.Or(refused, err)
	}
	return fmt.Errorf("%w: %s: its boot source is %s, and was %s", bmc.ErrRejected, p.Client.Address, now.here, before.here)
}

// pxeWords returns the spellings of PXE to try: the one that the system lists, both known ones
// if it lists none.
func pxeWords(t Tree) ([]string, error) {
	for _, list := range []Tree{t.Get("Boot", "BootSourceOverrideTarget@Redfish.AllowableValues"), t.Get("Boot", "BootSourceOverrideSupported")} {
		for _, v := range list.List() {
			if strings.EqualFold(v.Text(), "pxe") {
				return []string{v.Text()}, nil
			}
		}
		if all := list.List(); len(all) > 0 {
			return nil, fmt.Errorf("it boots once from %s, and not from Pxe", texts(all))
		}
	}
	return []string{"Pxe", "PXE"}, nil
}
