package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"drover/server/readiness"
	"drover/state"
)

// readinessGauges counts the parts that are not ready, at each scrape.
type readinessGauges struct {
	checks                                 *readiness.Checks
	notReady, warnings, directory, cluster *prometheus.Desc
}

// WatchReadiness counts the parts that /readyz lists.
func (m *Metrics) WatchReadiness(c *readiness.Checks) {
	m.registry.MustRegister(newFactGauges(c), &readinessGauges{
		checks:    c,
		notReady:  prometheus.NewDesc("drover_not_ready", "Parts that are not ready; /readyz lists them.", nil, nil),
		warnings:  prometheus.NewDesc("drover_warnings", "Warnings of /readyz: single clusters and chassis that do not work, and the like.", nil, nil),
		directory: prometheus.NewDesc("drover_directory_ready", "Whether a directory of the server works: 1, or 0 if it is full, hangs or fails.", []string{"directory"}, nil),
		cluster:   prometheus.NewDesc("drover_cluster_ready", "Whether nodes can join a cluster: 1, or 0 if its API server does not answer, refuses drover or lacks something.", []string{"cluster"}, nil),
	})
}

// Describe implements [prometheus.Collector].
func (g *readinessGauges) Describe(out chan<- *prometheus.Desc) {
	out <- g.notReady
	out <- g.warnings
	out <- g.directory
	out <- g.cluster
}

// Collect implements [prometheus.Collector].
func (g *readinessGauges) Collect(out chan<- prometheus.Metric) {
	warnings, problems := 0, 0
	for _, p := range g.checks.Problems() {
		if p.Warning {
			warnings++
		} else {
			problems++
		}
	}
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	gauge(g.notReady, float64(problems))
	gauge(g.warnings, float64(warnings))
	for name, works := range g.checks.Disks.Works() {
		gauge(g.directory, number(works), name)
	}
	for name, err := range g.checks.ClusterErrors() {
		gauge(g.cluster, number(err == nil), name)
	}
}

// newDamageGauge reports the damage of the state that was found at the start.
func newDamageGauge(store *state.Store) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "drover", Name: "state_damaged_parts",
		Help: "Parts of the state that were damaged at the start, and are left out."}, func() float64 { return float64(store.Damage()) })
}

// WatchLog counts the lines of the log that were lost; lost may be nil.
func (m *Metrics) WatchLog(lost func() uint64) {
	if lost == nil {
		lost = func() uint64 { return 0 }
	}
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: "drover", Name: "log_lines_dropped_total",
		Help: "Lines of the log that were lost because they could not be written, or not fast enough."}, func() float64 { return float64(lost()) }))
}
