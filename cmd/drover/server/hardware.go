package server

import (
	"context"
	"maps"
	"path/filepath"
	"slices"

	"drover/pools/hardware"
	"drover/pools/hardware/bmc"
	"drover/web/api"
)

// newHardware returns the service that keeps the nodes of chassis and switches
// machines. Keys are pinned beside the state.
func (s *Server) newHardware(dir string) *hardware.Service {
	h := hardware.New()
	h.Log = s.part("hardware")
	h.Farm, h.Nodes, h.Audit = s.Live, changes{s.Live, s.clusters.Refresh}, s.Store.Audit
	pinned := func(address, fingerprint string) {
		h.Log.Info("pinned at first use", "address", address, "fingerprint", fingerprint)
	}
	h.Login = bmc.Login{
		HostKeys: &bmc.Pins{Path: filepath.Join(dir, "known_hosts"), OnNew: pinned},
		Certs:    &bmc.Pins{Path: filepath.Join(dir, "known_certs"), OnNew: pinned},
	}
	s.metrics.WatchHardware(h)
	return h
}

// problems returns the problems for /readyz. Chassis in trouble are warnings: known
// machines boot all the same.
func (s *Server) problems(ctx context.Context, r *readiness) []api.Problem {
	out := r.problems(ctx)
	chassis := s.Hardware.Warnings()
	for _, name := range slices.Sorted(maps.Keys(chassis)) {
		out = append(out, api.Problem{Part: "chassis " + name, Problem: chassis[name], Warning: true})
	}
	return out
}
