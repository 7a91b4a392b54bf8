package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"drover/dhcp/ra"
	"drover/pools"
)

// serveRA makes a server of router advertisements for each interface. It works without
// DHCP too, and where it cannot, nothing else fails.
func (s *Server) serveRA(cfg pools.Server) {
	if cfg.RouterAdvertisements == pools.RAOff {
		return
	}
	for _, name := range cfg.Interfaces {
		r := &ra.Server{Interface: name, Log: s.part("ra"), OnPacket: s.metrics.routerDiscovery}
		s.metrics.watchRA(r)
		s.RA = append(s.RA, r)
	}
}

// routerDiscovery counts a solicitation or an advertisement.
func (m *Metrics) routerDiscovery(p ra.Packet) {
	m.discovery.WithLabelValues(p.Type, string(p.Result)).Inc()
}

// watchRA measures a server of router advertisements.
func (m *Metrics) watchRA(r *ra.Server) {
	labels := prometheus.Labels{"interface": r.Interface}
	m.registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "drover", Name: "other_routers",
			Help: "Other IPv6 routers on the wire, to which drover leaves router solicitations.", ConstLabels: labels},
			func() float64 { return float64(r.Routers()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: "drover", Name: "router_discovery_kernel_drops_total",
			Help: "Router solicitations and advertisements that the kernel dropped because they were not read in time.", ConstLabels: labels},
			func() float64 { return float64(r.Dropped()) }),
	)
}
