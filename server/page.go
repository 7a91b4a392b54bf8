package server

import (
	"time"

	"drover/dhcp/explain"
	"drover/internal/printable"
	"drover/pools"
	"drover/web/api"
	"drover/web/page"
)

// pageSources returns what the page shows beside the data of the API.
func (s *Server) pageSources() page.Sources {
	return page.Sources{Explain: s.explain, Config: s.Live.Status, Console: s.console}
}

// explain returns what a machine would get if its firmware asked now, as it did the last time.
func (s *Server) explain(mac pools.MAC) page.Explanation {
	farm := s.Live.Farm()
	e := explain.Server{Farm: farm, Now: time.Now, NextBoots: map[string]pools.NextBoot{}}
	for _, l := range s.leasesOf(mac) {
		e.Leases = append(e.Leases, pools.LeaseInfo{Lease: l})
		e.NextBoots[l.Node] = s.Store.NextBoots.Pending(l.Node)
	}
	if n, ok := farm.NodeOf(mac); ok {
		e.NextBoots[n.Name] = s.Store.NextBoots.Pending(n.Name)
	} else {
		e.Unknown = s.Machines.Unknown()
	}
	last, known := s.Store.Boots.Asked(mac)
	x, assumed, silence := e.NextBoot(mac, last, known)
	out := page.Explanation{Assumed: assumed}
	if silence != nil {
		out.Silence = silence.Error()
	}
	if x.Plan == nil {
		return out
	}
	out.Reply = x.Reply()
	why, shown := x.Plan.Why(), *x.Plan
	shown.Settings = api.Shown(shown.Settings) // browsers see no secrets
	for _, r := range explain.Rows(&shown) {
		v := page.Value{Field: r.Field, Text: printable.Line(r.Value, 300)}
		if o, ok := why[r.Field]; ok {
			v.From = o.String()
		}
		out.Values = append(out.Values, v)
	}
	script, err := s.scripts.Preview(s.Machines.Of(mac).Plan)
	if out.Script = string(script); err != nil {
		out.Problem = "its boot script tells of a problem: " + err.Error()
	}
	return out
}

// leasesOf returns the leases that decide what a machine gets: its own, and that of its
// node's address.
func (s *Server) leasesOf(mac pools.MAC) (all []pools.Lease) {
	if l, ok := s.Store.Leases.Of(mac); ok {
		all = append(all, l)
	}
	if l, ok := s.Store.Leases6.Of(mac); ok {
		all = append(all, l)
	}
	if n, ok := s.Live.Farm().NodeOf(mac); ok && n.IP.IsValid() {
		if l, ok := s.Store.Leases.At(n.IP); ok && l.MAC != mac {
			all = append(all, l)
		}
	}
	return all
}
