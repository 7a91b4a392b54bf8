package server

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// readinessGauges counts the parts that are not ready, at each scrape.
type readinessGauges struct {
	readiness                     *readiness
	notReady, warnings, directory *prometheus.Desc
}

// watchReadiness counts the parts that /readyz lists.
func (m *Metrics) watchReadiness(r *readiness) {
	m.registry.MustRegister(&readinessGauges{
		readiness: r,
		notReady:  prometheus.NewDesc("drover_not_ready", "Parts that are not ready; /readyz lists them.", nil, nil),
		warnings:  prometheus.NewDesc("drover_warnings", "Warnings of /readyz: single clusters and chassis that do not work, and the like.", nil, nil),
		directory: prometheus.NewDesc("drover_directory_ready", "Whether a directory of the server works: 1, or 0 if it is full, hangs or fails.", []string{"directory"}, nil),
	})
}

// Describe implements [prometheus.Collector].
func (g *readinessGauges) Describe(out chan<- *prometheus.Desc) {
	out <- g.notReady
	out <- g.warnings
	out <- g.directory
}

// Collect implements [prometheus.Collector].
func (g *readinessGauges) Collect(out chan<- prometheus.Metric) {
	warnings, problems := 0, 0
	for _, p := range g.readiness.problems() {
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
	for _, d := range g.readiness.disks.directories {
		ready := 1.0
		if d.failure(time.Now()) != nil {
			ready = 0
		}
		gauge(g.directory, ready, d.name)
	}
}

// watchLog counts the lines of the log that were lost; lost may be nil.
func (m *Metrics) watchLog(lost func() uint64) {
	if lost == nil {
		lost = func() uint64 { return 0 }
	}
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: "drover", Name: "log_lines_dropped_total",
		Help: "Lines of the log that were lost because they could not be written, or not fast enough."}, func() float64 { return float64(lost()) }))
}
