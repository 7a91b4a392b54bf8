package change

import (
	"context"
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"drover/pools"
	"drover/web/answer"
	"drover/web/page/table"
)

// action is something that a form does.
type action struct {
	title, verb, warning string

	picks  string // what is chosen, as a word; empty: nothing need be
	list   string // path of the list that it is chosen in
	role   pools.Role
	whole  bool // all of it is done, or none
	fields func(*Form) []Field
	plan   func(*Form) error // sets the preview, and what is done
}

// operator is the role of most actions.
const operator = pools.RoleOperator

// actions returns all actions, by their name in the URL.
func actions() map[string]action {
	none := func(*Form) []Field { return nil }
	return map[string]action{
		"add":     {"Add a node", "Add", "", "", "/nodes", operator, true, addFields, planAdd},
		"list":    {"Add several nodes", "Add", "", "", "/nodes", operator, true, listFields, planList},
		"adopt":   {"Make nodes of", "Add", "They boot as nodes of the pool when they ask again.", "machines", "/unknown", operator, true, adoptFields, planAdopt},
		"edit":    {"Edit", "Save", "", "nodes", "/nodes", operator, true, editFields, planEdit},
		"move":    {"Move", "Move", "A machine moves with its next boot. Its Node leaves the old cluster after a drain.", "nodes", "/nodes", operator, true, moveFields, planMove},
		"tag":     {"Tag", "Tag", "Tags take effect with the next boot; labels and taints at once.", "nodes", "/nodes", operator, true, tagFields, planTag},
		"remove":  {"Remove", "Remove", "A removed machine that asks again is unknown hardware.", "nodes", "/nodes", operator, true, none, planRemove},
		"next":    {"Next boot of", "Set", "It applies to the next boot alone, and starts none.", "nodes", "/nodes", operator, false, nextFields, planNext},
		"power":   {"Switch", "Switch", "Off asks no operating system. Off, cycle and from the network end at once what runs there.", "nodes", "/nodes", operator, false, powerFields, planPower},
		"boots":   {"Forget the boots of", "Forget", "Their timelines are gone. A machine that boots now begins anew with its next step.", "nodes", "/nodes", operator, false, none, planBoots},
		"forget":  {"Forget", "Forget", "A machine comes back when it asks again.", "machines", "/unknown", operator, false, none, planForget},
		"release": {"End the lease of", "End", "The machine does not notice before it renews: be sure that it is off.", "addresses", "/leases", operator, false, none, planRelease},
		"read":    {"Read chassis", "Read", "", "chassis", "/chassis", operator, false, none, planRead},
		"reload":  {"Read the config file again", "Read", "", "", "/config", pools.RoleAdmin, true, none, planReload},
	}
}

func nextFields(f *Form) []Field {
	options := []table.Pair{{Name: "none", Value: "none: as its pool says"}, {Name: string(pools.NextLocal), Value: "from its own disk"}, {Name: string(pools.NextRescue), Value: "a rescue shell"}}
	seen := map[string]bool{}
	add := func(image string) {
		if name := "image=" + image; image != "" && !seen[name] {
			seen[name] = true
			options = append(options, table.Pair{Name: name, Value: "image " + image})
		}
	}
	for _, i := range f.API.ImagesOf(f.Client) {
		if i.Current {
			add(i.Name)
		}
	}
	for _, pool := range f.API.Pools(f.Client) {
		add(pool.Image)
	}
	return []Field{{Name: "next", Label: "Next boot", Kind: "choice", Required: true, Options: options}}
}

func planNext(f *Form) error {
	var next pools.NextBoot
	if text := f.value("next"); text != "none" {
		var err error
		if next, err = pools.ParseNextBoot(text); err != nil {
			return err
		}
	}
	errs := f.API.CheckNextBoots(f.Picks, next, f.Client)
	for i, name := range f.Picks {
		if errs[i] == nil && f.API.NextBoots.Pending(name) == next {
			errs[i] = answer.BadRequest("it is so already")
		}
	}
	what := func(name string) []string {
		return []string{"next boot: " + orPool(f.API.NextBoots.Pending(name)) + " → " + orPool(next)}
	}
	each(f, f.Picks, f.Picks, errs, what, func(_ context.Context, names []string) []error {
		return f.API.SetNextBoots(names, next, f.Client)
	})
	return nil
}

func orPool(next pools.NextBoot) string {
	if next == "" {
		return "as its pool says"
	}
	return string(next)
}

func powerFields(f *Form) []Field {
	fields := []Field{{Name: "action", Label: "Do", Kind: "choice", Required: true, Options: []table.Pair{
		{Name: "status", Value: "only ask whether it is on"}, {Name: "on", Value: "on"}, {Name: "pxe", Value: "off, and on from the network"}, {Name: "cycle", Value: "off and on"}, {Name: "off", Value: "off"},
	}}}
	if len(f.Picks) > 1 {
		fields = append(fields, Field{Name: "parallel", Label: "At a time", Kind: "text", Hint: "a number; empty: all"})
	}
	return fields
}

func planPower(f *Form) error {
	req := pools.PowerRequest{Action: f.value("action")}
	if req.Action == "" {
		return answer.BadRequest("choose what to do")
	}
	if s := strings.TrimSpace(f.value("parallel")); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return answer.BadRequest("at a time: %q is not a number of machines", s)
		}
		req.MaxParallel = n
	}
	errs := make([]error, len(f.Picks))
	for i, name := range f.Picks {
		n, ok := f.Shared.Farm.Node(name)
		if errs[i] = f.Client.May(n.Pool); !ok {
			errs[i] = answer.NotFound("there is no such node")
		}
		if errs[i] == nil {
			req.Nodes = append(req.Nodes, name)
		}
	}
	if len(req.Nodes) > 0 {
		if _, err := f.API.PreviewPower(f.Client, req); err != nil {
			return err
		}
	}
	what := func(string) []string { return []string{"power: " + req.Action} }
	each(f, f.Picks, f.Picks, errs, what, func(ctx context.Context, names []string) []error {
		errs := make([]error, len(names))
		req.Nodes = names
		if _, err := f.API.SwitchPower(ctx, f.Client, req); err != nil {
			for i := range errs {
				errs[i] = err
			}
		}
		return errs
	})
	for i, l := range f.Lines {
		if m := f.Shared.ByName[l.Target]; m != nil && l.Refused == "" {
			f.Lines[i].Note = "it is " + m.State
		}
	}
	f.Next = "/power"
	return nil
}

// parsed returns what the picks of a form mean, and an error for each that means nothing.
func parsed[T any](f *Form, parse func(string) (T, error)) (all []T, errs []error) {
	for _, pick := range f.Picks {
		v, err := parse(pick)
		if err != nil {
			err = answer.BadRequest("%v", err)
		}
		all, errs = append(all, v), append(errs, err)
	}
	return all, errs
}

// either returns the first of two errors, for each thing.
func either(first, second []error) []error {
	for i, err := range first {
		if err == nil {
			first[i] = second[i]
		}
	}
	return first
}

func planBoots(f *Form) error {
	what := func(string) []string { return []string{"boots: forgotten"} }
	each(f, f.Picks, f.Picks, f.API.CheckForgetBoots(f.Picks, f.Client), what, func(_ context.Context, names []string) []error {
		return f.API.ForgetBoots(names, f.Client)
	})
	return nil
}

func planForget(f *Form) error {
	macs, errs := parsed(f, pools.ParseMAC)
	what := func(pools.MAC) []string { return []string{"forgotten"} }
	each(f, f.Picks, macs, either(errs, f.API.CheckForget(macs, f.Client)), what, func(_ context.Context, macs []pools.MAC) []error {
		return f.API.Forget(macs, f.Client)
	})
	return nil
}

func planRelease(f *Form) error {
	addrs, errs := parsed(f, func(s string) (netip.Addr, error) {
		a, err := netip.ParseAddr(s)
		if err != nil {
			err = answer.BadRequest("%q is not an IP address", s)
		}
		return a, err
	})
	found, missing := f.API.FindLeases(addrs, f.Client)
	what := func(l pools.Lease) []string {
		all := []string{"free: leased to " + l.MAC.String()}
		if l.Declined != "" {
			all[0] = "free: in quarantine since " + l.MAC.String() + " declined it"
		}
		if l.Node != "" {
			all = append(all, "node "+l.Node)
		}
		if l.Pool != "" {
			all = append(all, "pool "+l.Pool)
		}
		return all
	}
	each(f, f.Picks, found, either(errs, missing), what, func(_ context.Context, leases []pools.Lease) []error {
		return f.API.EndLeases(leases, f.Client)
	})
	return nil
}

func planRead(f *Form) error {
	f.Next = "/chassis"
	errs := make([]error, len(f.Picks))
	for i, name := range f.Picks {
		errs[i] = f.API.CheckSync(name, f.Client)
	}
	what := func(string) []string { return []string{"read"} }
	each(f, f.Picks, f.Picks, errs, what, func(_ context.Context, names []string) []error {
		errs := make([]error, len(names))
		for i, name := range names {
			errs[i] = f.API.Sync(name, f.Client)
		}
		return errs
	})
	return nil
}

func planReload(f *Form) error {
	f.act(f.Shared.Farm.Source, "read; mistakes leave the farm as it is")
	f.together(func() error {
		r, err := f.API.Reload(f.Client)
		if err == nil && r.Held != nil {
			err = &answer.Error{Code: http.StatusConflict, Msg: r.Held.Text()}
		}
		return err
	})
	return nil
}
