package server

import (
	"path/filepath"

	"drover/hardware"
	"drover/hardware/bmc"
	"drover/pools"
)

// newHardware returns the service that reads the nodes of chassis and switches the
// power of machines. It pins host keys and certificates in files beside the state.
func (s *Server) newHardware(dir string) *hardware.Service {
	h := hardware.New()
	h.Log = s.part("hardware")
	h.Farm, h.Nodes, h.Audit = s.Live, s.changes(), s.Store.Audit
	pinned := func(address, fingerprint string) {
		h.Log.Info("pinned at first use", "address", address, "fingerprint", fingerprint)
	}
	broken := func(place string) {
		h.Log.Warn("ignoring a malformed line of pinned keys: remove it", "line", place)
	}
	h.Drain = s.clusters.Drain
	h.Firmware = func(mac pools.MAC) pools.Firmware {
		q, _ := s.Store.Boots.Asked(mac)
		return q.Firmware
	}
	h.Login = bmc.Login{
		HostKeys: &bmc.Pins{Path: filepath.Join(dir, "known_hosts"), OnNew: pinned, OnBroken: broken},
		Certs:    &bmc.Pins{Path: filepath.Join(dir, "known_certs"), OnNew: pinned, OnBroken: broken},
	}
	s.metrics.WatchHardware(h)
	return h
}
