package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"drover/server/peers"
)

// peerGauges tell how the other servers were found, at each scrape.
type peerGauges struct {
	list     func() []peers.Status
	up, same *prometheus.Desc
}

// WatchPeers counts the other servers of the farm.
func (m *Metrics) WatchPeers(list func() []peers.Status) {
	labels := []string{"server"}
	m.registry.MustRegister(&peerGauges{
		list: list,
		up:   prometheus.NewDesc("drover_peer_up", "Whether another server of server.also answers: 1 or 0.", labels, nil),
		same: prometheus.NewDesc("drover_peer_same", "Whether boots can go on at another server: 1, or 0 if it does not answer or differs from this one.", labels, nil),
	})
}

// Describe implements [prometheus.Collector].
func (g *peerGauges) Describe(out chan<- *prometheus.Desc) {
	out <- g.up
	out <- g.same
}

// Collect implements [prometheus.Collector].
func (g *peerGauges) Collect(out chan<- prometheus.Metric) {
	for _, s := range g.list() {
		out <- prometheus.MustNewConstMetric(g.up, prometheus.GaugeValue, number(s.Answers), s.Server)
		out <- prometheus.MustNewConstMetric(g.same, prometheus.GaugeValue, number(s.Problem == "" && s.Answers), s.Server)
	}
}
