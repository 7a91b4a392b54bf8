package redfish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"drover/pools/hardware/bmc"
)

// System is the [bmc.Driver] of a computer system: a node of a chassis, or a server with
// an iLO.
type System struct {
	Client *Client
	Path   string // of the system; empty: the only one of the service
}

// get returns the document of the system.
func (p *System) get(ctx context.Context) (t Tree, err error) {
	if p.Path == "" {
		p.Path, t, err = p.Client.system(ctx)
		return t, err
	}
	return p.Client.Get(ctx, p.Path)
}

// State reads the power state of the system.
func (p *System) State(ctx context.Context) (bmc.State, error) {
	t, err := p.get(ctx)
	if err != nil {
		return bmc.Unknown, err
	}
	return PowerState(t), nil
}

// On sends a reset of type On.
func (p *System) On(ctx context.Context) error { return p.reset(ctx, "On") }

// Off sends a reset of type ForceOff.
func (p *System) Off(ctx context.Context) error { return p.reset(ctx, "ForceOff") }

// reset posts to the action that the system links to. In the interface before Redfish it
// posts to the system itself.
func (p *System) reset(ctx context.Context, kind string) error {
	t, err := p.get(ctx)
	if err != nil {
		return err
	}
	action := t.Get("Actions", "#ComputerSystem.Reset", "target").Text()
	if action == "" && strings.HasPrefix(p.Path, "/rest/") {
		return p.Client.call(ctx, http.MethodPost, p.Path, map[string]string{"Action": "Reset", "ResetType": kind}, nil)
	}
	action = cmp.Or(action, strings.TrimSuffix(p.Path, "/")+"/Actions/ComputerSystem.Reset/")
	return p.Client.call(ctx, http.MethodPost, action, map[string]string{"ResetType": kind}, nil)
}

// PXEOnce sets the override of the boot source, and checks it.
func (p *System) PXEOnce(ctx context.Context) (undo func(context.Context) error, err error) {
	t, err := p.get(ctx)
	if err != nil {
		return nil, err
	}
	for _, word := range pxeWords(t) {
		err = p.Client.call(ctx, http.MethodPatch, p.Path, map[string]any{"Boot": map[string]string{
			"BootSourceOverrideTarget": word, "BootSourceOverrideEnabled": "Once",
		}}, nil)
		if !errors.Is(err, bmc.ErrUnreadable) {
			break // success, or an error that another spelling does not change
		}
	}
	if err != nil {
		return nil, err
	}
	if t, err = p.get(ctx); err != nil {
		return nil, err
	}
	boot := t.Get("Boot")
	target, once := boot.Get("BootSourceOverrideTarget").Text(), boot.Get("BootSourceOverrideEnabled").Text()
	if !strings.EqualFold(target, "pxe") || !strings.EqualFold(once, "once") {
		return nil, fmt.Errorf("%w: %s: it was told to boot from the network once, and says target %q, enabled %q", bmc.ErrUnreadable, p.Client.Address, target, once)
	}
	return nil, nil
}

// pxeWords returns the spellings of PXE to try: the one that the system lists,
// else both known ones.
func pxeWords(t Tree) []string {
	for _, list := range []Tree{t.Get("Boot", "BootSourceOverrideTarget@Redfish.AllowableValues"), t.Get("Boot", "BootSourceOverrideSupported")} {
		for _, v := range list.List() {
			if strings.EqualFold(v.Text(), "pxe") {
				return []string{v.Text()}
			}
		}
	}
	return []string{"Pxe", "PXE"}
}

// PowerState returns the power state of a system. The older name of the field is Power.
func PowerState(t Tree) bmc.State {
	s, _ := bmc.ParseState(cmp.Or(t.Get("PowerState").Text(), t.Get("Power").Text()))
	return s
}
