package page

import (
	"context"
	"errors"
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
	fields func(*page, *change) []field
	plan   func(*page, *change) error // sets the preview, and what is done
}

// actions returns all actions, by their name in the URL.
func actions() map[string]action {
	none := func(*page, *change) []field { return nil }
	return map[string]action{
		"add":     {"Add a node", "Add", "", "", "/nodes", operator, addFields, planAdd},
		"edit":    {"Edit", "Save", "", "nodes", "/nodes", operator, editFields, planEdit},
		"move":    {"Move", "Move", "A machine moves with its next boot. Its Node leaves the old cluster after a drain.", "nodes", "/nodes", operator, moveFields, planMove},
		"tag":     {"Tag", "Tag", "Tags take effect with the next boot; labels and taints at once.", "nodes", "/nodes", operator, tagFields, planTag},
		"remove":  {"Remove", "Remove", "A removed machine that asks again is unknown hardware.", "nodes", "/nodes", operator, none, planRemove},
		"next":    {"Next boot of", "Set", "It applies to the next boot alone, and starts none.", "nodes", "/nodes", operator, nextFields, planNext},
		"power":   {"Switch", "Switch", "Off asks no operating system. Off, cycle and from the network end at once what runs there.", "nodes", "/nodes", operator, powerFields, planPower},
		"forget":  {"Forget", "Forget", "A machine comes back when it asks again.", "machines", "/unknown", operator, none, planForget},
		"release": {"End the lease of", "End", "The machine does not notice before it renews: be sure that it is off.", "addresses", "/leases", operator, none, planRelease},
		"read":    {"Read chassis", "Read", "", "chassis", "/chassis", operator, none, planRead},
		"reload":  {"Read the config file again", "Read", "", "", "/config", pools.RoleAdmin, none, planReload},
	}
}

func nextFields(p *page, c *change) []field {
	options := []table.Pair{{Name: "none", Value: "none: as its pool says"}, {Name: string(pools.NextLocal), Value: "from its own disk"}, {Name: string(pools.NextRescue), Value: "a rescue shell"}}
	seen := map[string]bool{}
	add := func(image string) {
		if name := "image=" + image; image != "" && !seen[name] {
			seen[name] = true
			options = append(options, table.Pair{Name: name, Value: "image " + image})
		}
	}
	for _, i := range p.api.Images() {
		if i.Current {
			add(i.Name)
		}
	}
	for _, pool := range c.Farm.Config.Pools {
		add(pool.Image)
	}
	return []field{{Name: "next", Label: "Next boot", Kind: "choice", Required: true, Options: options}}
}

func planNext(p *page, c *change) error {
	var next pools.NextBoot
	if text := c.value("next"); text != "none" {
		var err error
		if next, err = pools.ParseNextBoot(text); err != nil {
			return err
		}
	}
	var names []string
	for _, name := range c.Picks {
		if err := p.api.CheckNextBoot(name, next, c.client); err != nil {
			c.refuse(name, err.Error())
			continue
		}
		was, is := string(p.api.NextBoots.Pending(name)), string(next)
		if was == is {
			c.refuse(name, "it is so already")
			continue
		}
		c.act(name, "next boot: "+orPool(was)+" → "+orPool(is))
		names = append(names, name)
	}
	c.apply = func(context.Context) error {
		var errs []error
		for _, name := range names {
			errs = append(errs, p.api.SetNextBoot(name, next, c.client))
		}
		return errors.Join(errs...)
	}
	return nil
}

func orPool(next string) string {
	if next == "" {
		return "as its pool says"
	}
	return next
}

func powerFields(_ *page, c *change) []field {
	fields := []field{{Name: "action", Label: "Do", Kind: "choice", Required: true, Options: []table.Pair{
		{Name: "status", Value: "only ask whether it is on"}, {Name: "on", Value: "on"}, {Name: "pxe", Value: "off, and on from the network"}, {Name: "cycle", Value: "off and on"}, {Name: "off", Value: "off"},
	}}}
	if len(c.Picks) > 1 {
		fields = append(fields, field{Name: "parallel", Label: "At a time", Kind: "text", Hint: "a number; empty: all"})
	}
	return fields
}

func planPower(p *page, c *change) error {
	req := pools.PowerRequest{Action: c.value("action"), Nodes: c.Picks}
	if req.Action == "" {
		return answer.BadRequest("choose what to do")
	}
	if s := strings.TrimSpace(c.value("parallel")); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return answer.BadRequest("at a time: %q is not a number of machines", s)
		}
		req.MaxParallel = n
	}
	job, err := p.api.PreviewPower(c.client, req)
	if err != nil {
		return err
	}
	for _, n := range job.Nodes {
		how := "power: " + req.Action
		if m := c.ByName[n.Name]; m != nil {
			how += " (it is " + string(m.State) + ")"
		}
		c.act(n.Name, how)
	}
	c.next = "/power"
	c.apply = func(ctx context.Context) error {
		_, err := p.api.SwitchPower(ctx, c.client, req)
		return err
	}
	return nil
}

// planEach sets the preview of something that is done to each that is chosen.
func (c *change) planEach(what string, check, do func(string) error) {
	var all []string
	for _, pick := range c.Picks {
		if err := check(pick); err != nil {
			c.refuse(pick, answer.Of(err).Msg)
			continue
		}
		c.act(pick, what)
		all = append(all, pick)
	}
	c.apply = func(context.Context) error {
		var errs []error
		for _, pick := range all {
			errs = append(errs, do(pick))
		}
		return errors.Join(errs...)
	}
}

func planForget(p *page, c *change) error {
	of := func(do func(pools.MAC) error) func(string) error {
		return func(pick string) error {
			mac, err := pools.ParseMAC(pick)
			if err != nil {
				return answer.BadRequest("%v", err)
			}
			return do(mac)
		}
	}
	c.planEach("forgotten", of(func(m pools.MAC) error { return p.api.CheckForget(m, c.client) }), of(func(m pools.MAC) error { return p.api.Forget(m, c.client) }))
	return nil
}

func planRelease(p *page, c *change) error {
	of := func(do func(netip.Addr) error) func(string) error {
		return func(pick string) error {
			addr, err := netip.ParseAddr(pick)
			if err != nil {
				return answer.BadRequest("%q is not an IP address", pick)
			}
			return do(addr)
		}
	}
	c.planEach("free", of(func(a netip.Addr) error { return p.api.CheckLease(a, c.client) }), of(func(a netip.Addr) error { return p.api.EndLease(a, c.client) }))
	return nil
}

func planRead(p *page, c *change) error {
	c.next = "/chassis"
	c.planEach("read", func(name string) error { return p.api.CheckSync(name, c.client) }, func(name string) error { return p.api.Sync(name, c.client) })
	return nil
}

func planReload(p *page, c *change) error {
	c.act(c.Farm.Source, "read; mistakes leave the farm as it is")
	c.apply = func(context.Context) error {
		_, err := p.api.Reload(c.client)
		return err
	}
	return nil
}
