package metrics

import (
	"math"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"drover/dhcp"
	"drover/dhcp/dhcpd"
	"drover/pools/config"
	"drover/state"
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
			Help: "DHCP requests of IPv4 that wait to be answered.", ConstLabels: labels}, func() float64 { return float64(d.Depth()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: "drover", Name: "dhcp_kernel_drops_total",
			Help: "DHCP packets of IPv4 that the kernel dropped because they were not read in time.", ConstLabels: labels},
			func() float64 { return float64(d.Dropped()) }),
	)
}

// leaseGauge counts leases, and the addresses of ranges, at each scrape.
type leaseGauge struct {
	desc, size, free *prometheus.Desc
	live             *config.Live
	tables           map[string]*state.Leases // by family
}

func newLeaseGauge(live *config.Live, store *state.Store) *leaseGauge {
	labels := []string{"pool", "family"}
	return &leaseGauge{
		desc: prometheus.NewDesc("drover_leases_active", "Leases in force, by pool and family of addresses.", labels, nil),
		size: prometheus.NewDesc("drover_lease_range_addresses", "Addresses in the range of a pool that can be leased: none of a node, a router or a server.", labels, nil),
		free: prometheus.NewDesc("drover_lease_range_free", "Those of them that are neither leased nor in quarantine.", labels, nil),
		live: live, tables: map[string]*state.Leases{"ipv4": store.Leases, "ipv6": store.Leases6},
	}
}

// Describe implements [prometheus.Collector].
func (g *leaseGauge) Describe(out chan<- *prometheus.Desc) {
	out <- g.desc
	out <- g.size
	out <- g.free
}

// Collect implements [prometheus.Collector]. It sends the number of leases of each
// catch-all pool, and of other pools that have leases; and the sizes of their ranges.
func (g *leaseGauge) Collect(out chan<- prometheus.Metric) {
	farm, now := g.live.Farm(), time.Now()
	for family, table := range g.tables {
		gauge := func(d *prometheus.Desc, n int, pool string) {
			out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), pool, family)
		}
		count := table.ByPool(now)
		taken := slices.DeleteFunc(table.InForce(now), func(a netip.Addr) bool { return !farm.Leasable(a) })
		for _, p := range farm.Config.Pools {
			r := p.Range
			if family == "ipv6" {
				r = p.Range6
			}
			if !p.CatchAll || !r.IsValid() {
				continue
			}
			count[p.Name] += 0 // a pool without leases has the value zero
			size := farm.LeasableIn(r, math.MaxUint32)
			gauge(g.size, size, p.Name)
			free := size
			for _, a := range taken {
				if r.Contains(a) {
					free--
				}
			}
			gauge(g.free, free, p.Name)
		}
		for pool, n := range count {
			gauge(g.desc, n, pool)
		}
	}
}
