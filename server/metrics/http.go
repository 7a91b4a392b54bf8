package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"drover/httpboot"
)

// imageMetrics are the metrics of the queue for root images, and of refused requests
// of nodes.
type imageMetrics struct {
	running, waiting prometheus.Gauge
	waited           prometheus.Histogram
	refused          *prometheus.CounterVec
}

func newImageMetrics(r *prometheus.Registry) imageMetrics {
	m := imageMetrics{
		running: prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "drover", Name: "image_transfers",
			Help: "Nodes that fetch their root image now."}),
		waiting: prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "drover", Name: "image_queue",
			Help: "Nodes that wait for their turn to fetch their root image."}),
		waited: prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "drover", Name: "image_wait_seconds",
			Help: "From the first request for a root image to its turn.", Buckets: prometheus.ExponentialBuckets(0.1, 2.5, 12)}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "drover", Name: "http_refused_total",
			Help: "Requests and connections of nodes that were refused, by reason; docs/security.md lists them."}, []string{"reason"}),
	}
	r.MustRegister(m.running, m.waiting, m.waited, m.refused)
	return m
}

// Refused counts a refused request or connection of a node.
func (m *Metrics) Refused(r httpboot.Refusal) { m.images.refused.WithLabelValues(string(r)).Inc() }

// Queue sets the number of nodes that fetch their root image, and of those that wait.
func (m *Metrics) Queue(running, waiting int) {
	m.images.running.Set(float64(running))
	m.images.waiting.Set(float64(waiting))
}
