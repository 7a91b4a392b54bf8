package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"drover/dhcp/ra"
)

// RouterDiscovery counts a solicitation or an advertisement.
func (m *Metrics) RouterDiscovery(p ra.Packet) {
	m.discovery.WithLabelValues(p.Type, string(p.Result)).Inc()
}

// WatchRA measures a server of router advertisements.
func (m *Metrics) WatchRA(r *ra.Server) {
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
