package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"drover/hardware"
	"drover/pools"
)

// hardwareGauges collects the state of each chassis in the config at each scrape. A
// chassis that leaves the config so leaves the metrics too.
type hardwareGauges struct {
	chassis                   func() []pools.ChassisStatus
	success, number, interval *prometheus.Desc
}

// WatchHardware counts the readings of chassis and the power actions of a service.
func (m *Metrics) WatchHardware(h *hardware.Service) {
	syncs := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "drover", Name: "chassis_syncs_total",
		Help: "Times that a chassis was asked what it holds, by result."}, []string{"chassis", "result"})
	power := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "drover", Name: "power_actions_total",
		Help: "Machines that were switched, by action and result."}, []string{"action", "result"})
	h.OnSync = func(chassis string, ok bool) { syncs.WithLabelValues(chassis, result(ok)).Inc() }
	h.OnPower = func(action string, ok bool) { power.WithLabelValues(action, result(ok)).Inc() }
	m.registry.MustRegister(syncs, power, &hardwareGauges{
		chassis:  h.Chassis,
		success:  prometheus.NewDesc("drover_chassis_last_success_timestamp_seconds", "When a chassis was last asked with success; 0: never.", []string{"chassis"}, nil),
		interval: prometheus.NewDesc("drover_chassis_interval_seconds", "How often the server asks a chassis; not there for one that it asks on request alone.", []string{"chassis"}, nil),
		number:   prometheus.NewDesc("drover_chassis_nodes", "Nodes in a chassis when it was last asked with success.", []string{"chassis"}, nil),
	})
}

// Describe implements [prometheus.Collector].
func (g *hardwareGauges) Describe(out chan<- *prometheus.Desc) {
	out <- g.success
	out <- g.number
	out <- g.interval
}

// Collect implements [prometheus.Collector].
func (g *hardwareGauges) Collect(out chan<- prometheus.Metric) {
	for _, c := range g.chassis() {
		last := 0.0
		if !c.Good.IsZero() {
			last = float64(c.Good.UnixMilli()) / 1000
		}
		out <- prometheus.MustNewConstMetric(g.success, prometheus.GaugeValue, last, c.Name)
		out <- prometheus.MustNewConstMetric(g.number, prometheus.GaugeValue, float64(c.Nodes), c.Name)
		if c.Interval > 0 {
			out <- prometheus.MustNewConstMetric(g.interval, prometheus.GaugeValue, c.Interval.D().Seconds(), c.Name)
		}
	}
}
