package metrics

import (
	"io/fs"

	"github.com/prometheus/client_golang/prometheus"

	"drover/pools/config"
	"drover/server/readiness"
)

// neighborGauges report the neighbor tables at each scrape.
type neighborGauges struct {
	live        *config.Live
	proc        fs.FS
	limit, need *prometheus.Desc
}

// WatchNeighbors reports the neighbor tables of the kernel.
func (m *Metrics) WatchNeighbors(live *config.Live, proc fs.FS) {
	m.registry.MustRegister(&neighborGauges{
		live: live, proc: proc,
		limit: prometheus.NewDesc("drover_neighbor_table_limit", "Hosts that the neighbor table of the kernel holds at most (gc_thresh3), by family of addresses.", []string{"family"}, nil),
		need:  prometheus.NewDesc("drover_neighbor_table_need", "Entries of the neighbor table that the farm takes, with a reserve, by family of addresses.", []string{"family"}, nil),
	})
}

// Describe implements [prometheus.Collector].
func (g *neighborGauges) Describe(out chan<- *prometheus.Desc) {
	out <- g.limit
	out <- g.need
}

// Collect implements [prometheus.Collector].
func (g *neighborGauges) Collect(out chan<- prometheus.Metric) {
	for _, t := range readiness.NeighborTables(g.live.Farm(), g.proc) {
		if t.Limit > 0 {
			out <- prometheus.MustNewConstMetric(g.limit, prometheus.GaugeValue, float64(t.Limit), t.Family)
		}
		out <- prometheus.MustNewConstMetric(g.need, prometheus.GaugeValue, float64(t.Need), t.Family)
	}
}
