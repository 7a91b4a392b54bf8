package redfish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"

	"drover/hardware/bmc"
	"drover/internal/printable"
)

// System is the [bmc.Driver] of a computer system: a node of a chassis, or a server with
// a management processor of its own.
type System struct {
	Client *Client
	Name   string // ID, name, serial number or UUID of the system; empty: the only one of the service
	Path   string // of the system; empty: found by Name
}

// get returns the document of the system.
func (p *System) get(ctx context.Context) (d document, err error) {
	if p.Path == "" {
		if p.Path, _, err = p.Client.system(ctx, p.Name); err != nil {
			if errors.Is(err, errSeveral) {
				err = fmt.Errorf("%w (--system names one, or system in the machine's power)", err)
			}
			return d, err
		}
	}
	return p.Client.document(ctx, p.Path)
}

// State reads the power state of the system.
func (p *System) State(ctx context.Context) (bmc.State, error) {
	d, err := p.get(ctx)
	if err != nil {
		return bmc.Unknown, err
	}
	return PowerState(d.Tree), nil
}

// On sends a reset of type On, or one that does the same.
func (p *System) On(ctx context.Context) error { return p.reset(ctx, bmc.On) }

// Off sends a reset of type ForceOff.
func (p *System) Off(ctx context.Context) error { return p.reset(ctx, bmc.Off) }

// reset posts to the action that the system links to. In the interface before Redfish it
// posts to the system itself.
func (p *System) reset(ctx context.Context, want bmc.State) error {
	d, err := p.get(ctx)
	if err != nil {
		return err
	}
	action := d.Get("Actions", "#ComputerSystem.Reset")
	kind, err := p.resetType(ctx, action, want)
	if err != nil {
		return err
	}
	in := map[string]string{"ResetType": kind}
	to := action.Get("target").raw()
	if to == "" && strings.HasPrefix(p.Path, "/rest/") {
		to, in["Action"] = p.Path, "Reset"
	}
	to = cmp.Or(to, strings.TrimSuffix(p.Path, "/")+"/Actions/ComputerSystem.Reset/")
	body, err := p.Client.change(ctx, message{method: http.MethodPost, path: to, in: in}, d)
	if err == nil && failed(body) {
		err = fmt.Errorf("%w: %s: %s (%s)", bmc.ErrRejected, p.Client.Address, kind, p.Client.says(body))
	}
	return err
}

// resetType returns the type of the reset that switches a system, of those that it allows. A system
// that lists none allows the usual ones.
func (p *System) resetType(ctx context.Context, action Tree, want bmc.State) (string, error) {
	list := action.Get("ResetType@Redfish.AllowableValues").List()
	if at := action.Get("@Redfish.ActionInfo").raw(); len(list) == 0 && at != "" {
		info, err := p.Client.Get(ctx, at)
		if err != nil {
			return "", err
		}
		for _, parameter := range info.Get("Parameters").List() {
			if strings.EqualFold(parameter.Get("Name").Text(), "ResetType") {
				list = parameter.Get("AllowableValues").List()
			}
		}
	}
	types := []string{"ForceOff"}
	if want == bmc.On {
		types = []string{"On", "ForceOn"} // no button: a second push would be a request to switch off
	}
	if len(list) == 0 {
		return types[0], nil
	}
	for _, kind := range types {
		for _, v := range list {
			if strings.EqualFold(v.Text(), kind) {
				return v.Text(), nil
			}
		}
	}
	return "", fmt.Errorf("%w: %s: it allows the reset types %s, and not %s", bmc.ErrRejected, p.Client.Address, texts(list), types[0])
}

// texts lists values for an error.
func texts(list []Tree) string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = v.Text()
	}
	return printable.Line(strings.Join(out, ", "), maxSaid)
}

// PowerState returns the power state of a system. The older name of the field is Power.
func PowerState(t Tree) bmc.State {
	s, _ := bmc.ParseState(cmp.Or(t.Get("PowerState").Text(), t.Get("Power").Text()))
	return s
}

// errSeveral reports that a system was not found among the systems of a service.
var errSeveral = errors.New("several systems")

// maxSystems bounds the systems that are read to find one by its name.
const maxSystems = 64

// system returns the path and the document of the computer system with a name: its ID, its name, its
// serial number or its UUID. Without a name it is the only one of the service.
func (s *Client) system(ctx context.Context, name string) (at string, t Tree, err error) {
	links, err := s.Collection(ctx, "/redfish/v1/Systems/")
	switch {
	case err != nil:
		return "", Tree{}, err
	case len(links) == 0:
		return "", Tree{}, fmt.Errorf("%w: %s has no system", bmc.ErrUnreadable, s.Address)
	case len(links) == 1 && name == "":
		t, err = s.Get(ctx, links[0])
		return links[0], t, err
	case len(links) > maxSystems:
		return "", Tree{}, fmt.Errorf("%w: %s has %d systems, more than %d", bmc.ErrUnreadable, s.Address, len(links), maxSystems)
	}
	var list []string
	found := 0
	for _, link := range links {
		one, err := s.Get(ctx, link)
		if err != nil {
			return "", Tree{}, err
		}
		id := cmp.Or(one.Get("Id").Text(), path.Base(strings.TrimSuffix(link, "/")))
		names := []string{id, one.Get("Name").Text(), one.Get("SerialNumber").Text(), one.Get("UUID").Text()}
		if name != "" && slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) }) {
			at, t = link, one
			found++
		}
		list = append(list, fmt.Sprintf("%s (name %q, serial %q)", id, names[1], names[2]))
	}
	if found == 1 {
		return at, t, nil
	}
	what := "which of them is meant?"
	if name != "" {
		what = fmt.Sprintf("%d of them are %q", found, name)
	}
	return "", Tree{}, fmt.Errorf("%w: %s has %s: %s", errSeveral, s.Address, printable.Line(strings.Join(list, ", "), 3*maxSaid), what)
}
