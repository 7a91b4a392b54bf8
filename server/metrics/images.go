package metrics

import (
	"cmp"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"drover/pools"
	"drover/pools/boots"
)

// maxGenerations bounds the series of generations. The rest of the machines is counted with the
// generation "other".
const maxGenerations = 100

// imageGauge counts machines by the generation of their image, at each scrape.
type imageGauge struct {
	desc *prometheus.Desc
	list func() []boots.Record // the newest first
}

// WatchImages counts machines by the image and generation of their newest boot. list returns
// boots, the newest first, and fellBack the number of nodes that boot another generation than their
// pool says.
func (m *Metrics) WatchImages(list func() []boots.Record, fellBack func() int) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: "drover", Name: "fallback_nodes",
		Help: "Nodes that boot the generation of their image that was ready on them last, since boots of a later one have failed.",
	}, func() float64 { return float64(fellBack()) }))
	m.registry.MustRegister(&imageGauge{
		prometheus.NewDesc("drover_image_nodes", "Machines by the generation of the image that their newest boot got.", []string{"image", "generation"}, nil), list,
	})
}

// Describe implements [prometheus.Collector].
func (g *imageGauge) Describe(out chan<- *prometheus.Desc) { out <- g.desc }

// generation is one series.
type generation struct{ image, id string }

// Collect implements [prometheus.Collector].
func (g *imageGauge) Collect(out chan<- prometheus.Metric) {
	seen, count := map[string]bool{}, map[generation]int{}
	for _, b := range g.list() {
		if !seen[b.Node] && b.Generation != "" {
			count[generation{pools.ImageName(b.Image), pools.ShortID(b.Generation)}]++
		}
		seen[b.Node] = true
	}
	all := slices.SortedFunc(maps.Keys(count), func(a, b generation) int {
		return cmp.Or(count[b]-count[a], cmp.Compare(a.image, b.image), cmp.Compare(a.id, b.id))
	})
	for _, rest := range all[min(len(all), maxGenerations):] {
		count[generation{"other", "other"}] += count[rest]
		delete(count, rest)
	}
	for series, n := range count {
		out <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, float64(n), series.image, series.id)
	}
}
