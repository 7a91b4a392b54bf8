package metrics

import (
	"math"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"drover/dhcp"
	"drover/dhcp/dhcpd"
	"drover/pools/config"
	"drover/pools/state"
)

// packet is a kind of DHCP packet that has its own counter. There are few kinds: a
// client chooses no part of one.
type packet struct {
	typ      string
	decision dhcp.Decision
}

// packets counts DHCP packets. It caches the counter of each kind: finding one by its
// labels costs more than the rest of the counting.
type packets struct {
	all *prometheus.CounterVec
	mu  sync.RWMutex
	by  map[packet]prometheus.Counter
}

func (p *packets) count(kind packet) {
	p.mu.RLock()
	c := p.by[kind]
	p.mu.RUnlock()
	if c == nil {
		c = p.all.WithLabelValues(kind.typ, string(kind.decision))
		p.mu.Lock()
		p.by[kind] = c
		p.mu.Unlock()
	}
	c.Inc()
}

// WatchDHCP measures the queue of a DHCP server, and counts the packets that the
// kernel dropped before it.
func (m *Metrics) WatchDHCP(d *dhcpd.Server) {
	labels := prometheus.Labels{"interface": d.Interface}
	m.registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "drover", Name: "dhcp_queue_depth",
			Help: "DHCP requests that wait to be answered.", ConstLabels: labels}, func() float64 { return float64(d.Depth()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: "drover", Name: "dhcp_kernel_drops_total",
			Help: "DHCP packets that the kernel dropped because they were not read in time.", ConstLabels: labels},
			func() float64 { return float64(d.Dropped()) }),
	)
}

// leaseGauge counts the leases in force at each scrape.
type leaseGauge struct {
	desc, size *prometheus.Desc
	live       *config.Live
	leases     *state.Leases
}

func newLeaseGauge(live *config.Live, leases *state.Leases) *leaseGauge {
	return &leaseGauge{
		desc: prometheus.NewDesc("drover_leases_active", "Leases in force, by pool.", []string{"pool"}, nil),
		size: prometheus.NewDesc("drover_lease_range_addresses", "Addresses in the range of a pool.", []string{"pool"}, nil),
		live: live, leases: leases,
	}
}

// Describe implements [prometheus.Collector].
func (g *leaseGauge) Describe(out chan<- *prometheus.Desc) { out <- g.desc; out <- g.size }

// Collect implements [prometheus.Collector]. It sends the number of leases of each
// catch-all pool, and of other pools that have leases; and the sizes of their ranges.
func (g *leaseGauge) Collect(out chan<- prometheus.Metric) {
	count := g.leases.ByPool(time.Now())
	for _, p := range g.live.Farm().Config.Pools {
		if p.CatchAll {
			count[p.Name] += 0 // a pool without leases has the value zero
			if p.Range.IsValid() {
				out <- prometheus.MustNewConstMetric(g.size, prometheus.GaugeValue, float64(p.Range.Count(math.MaxUint32)), p.Name)
			}
		}
	}
	for pool, n := range count {
		out <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, float64(n), pool)
	}
}
