package metrics

import (
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"drover/pools"
	"drover/pools/config"
	"drover/server/readiness"
)

// Build reports the version of the server.
func (m *Metrics) Build(version string) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "drover", Name: "build_info",
		Help: "1; the labels have the version of drover and of Go.", ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()}},
		func() float64 { return 1 }))
}

// CertificateEnd reports when a certificate of the server ends, which may be renewed.
func (m *Metrics) CertificateEnd(listener string, end func() time.Time) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "drover", Name: "certificate_expiry_timestamp_seconds",
		Help: "When the certificate of a listener ends, which the config names: api or nodes.", ConstLabels: prometheus.Labels{"listener": listener}},
		func() float64 { return float64(end().Unix()) }))
}

// nodeGauge counts machines at each scrape.
type nodeGauge struct {
	desc  *prometheus.Desc
	live  *config.Live
	count func() map[string]map[pools.NodeState]int
}

// WatchNodes counts the machines of each pool, by their state.
func (m *Metrics) WatchNodes(live *config.Live, count func() map[string]map[pools.NodeState]int) {
	m.registry.MustRegister(&nodeGauge{
		prometheus.NewDesc("drover_nodes", "Machines of a pool, by the state that drover node list shows.", []string{"pool", "state"}, nil), live, count,
	})
}

// Describe implements [prometheus.Collector].
func (g *nodeGauge) Describe(out chan<- *prometheus.Desc) { out <- g.desc }

// Collect implements [prometheus.Collector]. Each pool of the config has all states, so that
// a state that no machine is in has the value zero.
func (g *nodeGauge) Collect(out chan<- prometheus.Metric) {
	count := g.count()
	for _, p := range g.live.Farm().Config.Pools {
		for _, state := range pools.NodeStates() {
			out <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, float64(count[p.Name][state]), p.Name, string(state))
		}
	}
}

// factGauges report the space of the server's directories, and facts about files, at each
// scrape.
type factGauges struct {
	checks                                 *readiness.Checks
	size, free, image, credential, renewal *prometheus.Desc
}

func newFactGauges(checks *readiness.Checks) *factGauges {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("drover_"+name, help, labels, nil)
	}
	return &factGauges{
		checks:     checks,
		size:       desc("directory_size_bytes", "Size of the file system of a directory of the server.", "directory"),
		free:       desc("directory_free_bytes", "Space that is left on the file system of a directory of the server.", "directory"),
		image:      desc("pool_image_info", "1; the generation of the image that machines of a pool boot now.", "pool", "image", "generation"),
		credential: desc("cluster_credentials_expiry_timestamp_seconds", "When the credentials of drover for a cluster end; not there if they do not, or are in files that something else renews.", "cluster"),
		renewal:    desc("cluster_credentials_last_renewal_successful", "1; 0 if drover could not renew its credentials for a cluster at its last try. Not there if they are not a token that drover renews.", "cluster"),
	}
}

// Describe implements [prometheus.Collector].
func (g *factGauges) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{g.size, g.free, g.image, g.credential, g.renewal} {
		out <- d
	}
}

// Collect implements [prometheus.Collector].
func (g *factGauges) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	for name, space := range g.checks.Disks.Space() {
		gauge(g.size, float64(space.Size), name)
		gauge(g.free, float64(space.Free), name)
	}
	facts := g.checks.Facts()
	for pool, generation := range facts.Generations {
		gauge(g.image, 1, pool, generation.Image, generation.ID)
	}
	for cluster, end := range facts.Expiries {
		gauge(g.credential, float64(end.Unix()), cluster)
	}
	for cluster, err := range facts.Renewals {
		successful := 1.0
		if err != nil {
			successful = 0
		}
		gauge(g.renewal, successful, cluster)
	}
}
