package ilo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// SystemPower is the power of a computer system over REST: a node of a chassis,
// or a server behind its iLO. Make it with [NodeSystem] or [ServerSystem].
type SystemPower struct {
	site *Site
	path string // of the system; empty: the only one there is
}

// NodeSystem is a node of a chassis over the REST interface of its manager.
func NodeSystem(s *Site, slot Slot) *SystemPower {
	return &SystemPower{s, restSystems + "/" + strings.ToUpper(slot.String())}
}

// ServerSystem is a server over the Redfish service of its iLO.
func ServerSystem(s *Site) *SystemPower { return &SystemPower{site: s} }

// get fetches the system.
func (p *SystemPower) get(ctx context.Context) (t tree, err error) {
	if p.path == "" {
		p.path, t, err = p.site.system(ctx)
		return t, err
	}
	err = p.site.call(ctx, http.MethodGet, p.path, nil, &t)
	return t, err
}

// State reads the system.
func (p *SystemPower) State(ctx context.Context) (State, error) {
	t, err := p.get(ctx)
	if err != nil {
		return Unknown, err
	}
	s, _ := parseState(powerWord(t))
	return s, nil
}

// On resets the system to on.
func (p *SystemPower) On(ctx context.Context) error { return p.reset(ctx, "On") }

// Off resets the system to off.
func (p *SystemPower) Off(ctx context.Context) error { return p.reset(ctx, "ForceOff") }

// reset is an action of its own in Redfish, with a link to it; before, it was
// posted to the system.
func (p *SystemPower) reset(ctx context.Context, kind string) error {
	t, err := p.get(ctx)
	if err != nil {
		return err
	}
	action := t.get("Actions", "#ComputerSystem.Reset", "target").text()
	if action == "" && strings.HasPrefix(p.path, restSystems) {
		return p.site.call(ctx, http.MethodPost, p.path, map[string]string{"Action": "Reset", "ResetType": kind}, nil)
	}
	action = cmp.Or(action, strings.TrimSuffix(p.path, "/")+"/Actions/ComputerSystem.Reset/")
	return p.site.call(ctx, http.MethodPost, action, map[string]string{"ResetType": kind}, nil)
}

// PXEOnce sets the override of the boot source, and reads it back.
func (p *SystemPower) PXEOnce(ctx context.Context) error {
	t, err := p.get(ctx)
	if err != nil {
		return err
	}
	for _, word := range pxeWords(t) {
		err = p.site.call(ctx, http.MethodPatch, p.path, map[string]any{"Boot": map[string]string{
			"BootSourceOverrideTarget": word, "BootSourceOverrideEnabled": "Once",
		}}, nil)
		if !errors.Is(err, ErrUnreadable) {
			break // it was taken, or it is no question of spelling
		}
	}
	if err != nil {
		return err
	}
	if t, err = p.get(ctx); err != nil {
		return err
	}
	boot := t.get("Boot")
	target, once := boot.get("BootSourceOverrideTarget").text(), boot.get("BootSourceOverrideEnabled").text()
	if lower(target) != "pxe" || lower(once) != "once" {
		return fmt.Errorf("%w: %s: it was told to boot from the network once, and says target %q, enabled %q", ErrUnreadable, p.site.Address, target, once)
	}
	return nil
}

// pxeWords are the spellings of PXE to try: what the system lists, else both
// that are known.
func pxeWords(t tree) []string {
	for _, list := range []tree{t.get("Boot", "BootSourceOverrideTarget@Redfish.AllowableValues"), t.get("Boot", "BootSourceOverrideSupported")} {
		for _, v := range list.list() {
			if lower(v.text()) == "pxe" {
				return []string{v.text()}
			}
		}
	}
	return []string{"Pxe", "PXE"}
}
