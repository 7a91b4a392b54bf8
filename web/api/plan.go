package api

import (
	"net/http"
	"net/url"

	"drover/pools"
	"drover/pools/resolve"
	"drover/web/answer"
	"drover/web/route"
)

// Plans makes the plans of machines. They are shared: nobody changes them.
type Plans interface {
	// Resolve returns the plan of a machine; nil: it gets no answer, for the reason that
	// WhyNot returns.
	Resolve(q resolve.Query) *resolve.Plan
	WhyNot(q resolve.Query) string
	// Named returns the plan of a node; nil: no machine is known to be that node.
	Named(node string) *resolve.Plan
}

func (a *API) planRoute() route.Route {
	firmwares := make([]string, len(pools.Firmwares))
	for i, f := range pools.Firmwares {
		firmwares[i] = string(f)
	}
	return route.Route{
		Method: "GET", Path: "/api/v1/plan", Role: pools.RoleViewer,
		Summary: "What a machine would get in its next boot, and the line that says so. Settings that may be secret are for the token of an admin",
		Query: []route.Parameter{
			{Name: "mac", About: "the machine with this MAC"},
			{Name: "node", About: "the machine that is this node"},
			{Name: "firmware", About: "what asks; default: " + string(pools.UEFIx64), Kind: route.Word, Words: firmwares},
			{Name: "ipv6", About: "it asks over IPv6", Kind: route.Bool},
		}, Status: 200, Answer: resolve.Explained{}, Errors: noSuch, Handle: a.getPlan,
	}
}

func (a *API) getPlan(w http.ResponseWriter, r *http.Request) error {
	p, err := a.planOf(r.URL.Query())
	if err != nil {
		return err
	}
	if err := client(r).May(p.Pool); err != nil {
		return err
	}
	out := resolve.Explained{Plan: *p, Origins: p.Why()}
	if !client(r).SeesSecrets() {
		out.Settings, out.Hidden = Shown(p.Settings), true
	} else {
		w.Header().Set("Cache-Control", "no-store, no-transform")
	}
	answer.JSON(w, http.StatusOK, out)
	return nil
}

// planOf returns the plan of the machine that a query names.
func (a *API) planOf(query url.Values) (*resolve.Plan, error) {
	q := resolve.Query{Firmware: pools.UEFIx64, IPv6: query.Get("ipv6") == "true"}
	if f := query.Get("firmware"); f != "" {
		q.Firmware = pools.Firmware(f)
	}
	mac, node := query.Get("mac"), query.Get("node")
	switch {
	case (mac == "") == (node == ""):
		return nil, answer.BadParameter("mac", "write ?mac=94:57:a5:d3:ec:f2 or ?node=m1c1", "name one machine, by mac or by node")
	case node != "":
		p := a.Plans.Named(node)
		if p == nil {
			return nil, answer.NotFound("no machine is known to be the node %q", node)
		}
		q.MAC = p.MAC
	default:
		var err error
		if q.MAC, err = pools.ParseMAC(mac); err != nil {
			return nil, answer.BadParameter("mac", "", "%v", err)
		}
	}
	p := a.Plans.Resolve(q)
	if p == nil {
		return nil, answer.NotFound("%s gets no answer: %s", q.MAC, a.Plans.WhyNot(q))
	}
	if why := p.LacksIPv6(); why != "" {
		return nil, answer.NotFound("%s gets no address over IPv6: %s", q.MAC, why)
	}
	return p, nil
}

// Shown returns the settings that are no secret, by their kind. Files, units and scripts are
// there with their names alone.
func Shown(s resolve.Settings) resolve.Settings {
	out := resolve.Settings{
		KernelArgs: s.KernelArgs, Timezone: s.Timezone, Modules: s.Modules, Sysctls: s.Sysctls, Disks: s.Disks, Zram: s.Zram,
		Loaders: s.Loaders, MenuTimeout: s.MenuTimeout, UBoot: s.UBoot, Labels: s.Labels, Taints: s.Taints,
		Hosts: s.Hosts, DNS: s.DNS, Search: s.Search, MaskUnits: s.MaskUnits, DebugShell: s.DebugShell,
		Files: map[string]pools.File{}, Units: map[string]pools.Unit{}, Scripts: map[string]pools.Script{},
	}
	for path, f := range s.Files {
		out.Files[path] = pools.File{Mode: f.Mode, Owner: f.Owner}
	}
	for name, u := range s.Units {
		out.Units[name] = pools.Unit{Enable: u.Enable}
	}
	for name, s := range s.Scripts {
		out.Scripts[name] = pools.Script{Stage: s.Stage}
	}
	return out
}
