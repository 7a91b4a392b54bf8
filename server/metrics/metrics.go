// Package metrics has the metrics of drover serve, for Prometheus. The parts of the
// server know nothing of it: package server connects their hooks to the methods of
// [Metrics].
package metrics

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"drover/dhcp"
	"drover/httpboot"
	"drover/kube/approve"
	"drover/pools"
	"drover/pools/boots"
	"drover/pools/config"
	"drover/state"
	"drover/tftp"
)

// Metrics are all metrics of drover serve. The other packages know nothing of them:
// they call hooks. No label has a value that a client can choose.
type Metrics struct {
	registry *prometheus.Registry
	live     *config.Live

	packets     packets
	dhcpSeconds prometheus.Histogram
	discovery   *prometheus.CounterVec
	tftpFiles   *prometheus.CounterVec
	tftpDrops   *prometheus.CounterVec
	netconsole  *prometheus.CounterVec
	traces      *prometheus.CounterVec
	tftpBytes   prometheus.Counter
	httpAnswers *prometheus.CounterVec
	httpBytes   *prometheus.CounterVec
	images      imageMetrics
	bootSteps   *prometheus.CounterVec
	stepSeconds *prometheus.HistogramVec
	stepTook    *prometheus.HistogramVec
	reloads     *prometheus.CounterVec
	reconciles  *prometheus.CounterVec
	changes     *prometheus.CounterVec
	requests    *prometheus.CounterVec
	unread      *prometheus.CounterVec
}

// New returns the metrics of a farm and its state.
func New(live *config.Live, store *state.Store) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), live: live}
	m.packets.by = map[packet]prometheus.Counter{}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "drover", Name: name, Help: help}, labels)
		m.registry.MustRegister(c)
		return c
	}
	m.packets.all = counter("dhcp_packets_total", "DHCP packets received, by message type and what was done.", "type", "decision")
	m.discovery = counter("router_discovery_packets_total", "Router solicitations and advertisements received, by what became of them.", "type", "result")
	m.tftpFiles = counter("tftp_transfers_total", "TFTP transfers, by result.", "result")
	m.netconsole = counter("netconsole_datagrams_total", "Datagrams with lines of kernels, by result.", "result")
	m.traces = counter("traces_total", "Boots that were sent to a collector of traces, by result.", "result")
	m.tftpDrops = counter("tftp_dropped_total", "Packets to the TFTP server that got no answer, or a late one, by reason.", "reason")
	m.httpAnswers = counter("http_requests_total", "Requests of nodes, by route and status.", "route", "status")
	m.httpBytes = counter("http_bytes_total", "Bytes sent to nodes, by route.", "route")
	m.images = newImageMetrics(m.registry)
	m.bootSteps = counter("boot_steps_total", "Steps that boots reached, and errors that they reported, by pool.", "pool", "step", "result")
	m.reconciles = counter("cluster_looks_total", "Reconciliations of the labels and taints of all Nodes of a cluster, by result.", "cluster", "result")
	m.changes = counter("cluster_node_changes_total", "Nodes whose labels or taints drover has changed, by cluster.", "cluster")
	m.requests = counter("certificate_requests_total", "Certificate requests of nodes, by cluster and what became of them.", "cluster", "result")
	m.unread = counter("cluster_answers_refused_total", "Answers of API servers that drover did not read because of their size or kind, by cluster.", "cluster")
	m.reloads = counter("config_reloads_total", "Attempts to reload the config, by result.", "result")
	m.tftpBytes = prometheus.NewCounter(prometheus.CounterOpts{Namespace: "drover", Name: "tftp_bytes_total", Help: "Bytes sent by TFTP."})
	m.dhcpSeconds = prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "drover", Name: "dhcp_seconds",
		Help: "From receiving a DHCP packet to its answer leaving; packets without one do not count.", Buckets: prometheus.ExponentialBuckets(50e-6, 2, 16)})
	m.stepSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "drover", Name: "boot_step_seconds",
		Help: "From the first DISCOVER to a step of a boot.", Buckets: prometheus.ExponentialBuckets(0.5, 1.7, 14)}, []string{"step"})
	m.stepTook = prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "drover", Name: "boot_step_took_seconds",
		Help: "From the step before to a step of a boot.", Buckets: prometheus.ExponentialBuckets(0.01, 2.2, 16)}, []string{"step"})
	m.registry.MustRegister(m.tftpBytes, m.dhcpSeconds, m.stepSeconds, m.stepTook, newLeaseGauge(live, store), newDamageGauge(store), newConfigGauges(live), collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// WatchUnknown counts the machines that no node declares, at each scrape.
func (m *Metrics) WatchUnknown(list func() []pools.Unknown) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "drover", Name: "unknown_machines",
		Help: "Machines that asked for an address and that no node declares."}, func() float64 { return float64(len(list())) }))
}

// WatchMoves counts the nodes that are leaving a cluster, at each scrape.
func (m *Metrics) WatchMoves(moves func() []pools.Move) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "drover", Name: "moving_nodes",
		Help: "Nodes that the config gave to another cluster and that have not left theirs."}, func() float64 { return float64(len(moves())) }))
}

// WatchBoots counts the boots that make no progress, at each scrape.
func (m *Metrics) WatchBoots(list func() []boots.Record) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "drover", Name: "boots_stuck",
		Help: "Machines whose boot takes much longer for its next step than is usual."}, func() float64 {
		stuck := 0
		for _, b := range boots.MarkStuck(list(), time.Now()) {
			if b.Stuck != nil {
				stuck++
			}
		}
		return float64(stuck)
	}))
}

// Handler returns the handler of scrapes.
func (m *Metrics) Handler() http.Handler {
	scrape := promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.begin()
		scrape.ServeHTTP(w, r)
	})
}

// begin makes the counters of mistakes that alerts watch, with the value zero. Prometheus'
// increase() is zero for a series that begins with the first mistake.
func (m *Metrics) begin() {
	cfg := m.live.Farm().Config
	for _, c := range cfg.Clusters {
		for _, result := range []string{"approved", "denied", "left", "foreign", "error"} {
			m.requests.WithLabelValues(c.Name, result)
		}
	}
	for _, p := range cfg.Pools {
		for _, s := range boots.Steps() {
			m.bootSteps.WithLabelValues(p.Name, string(s.Step), result(false))
		}
	}
}

// Exchange counts a DHCP packet, and measures the time of its answer if it has one.
func (m *Metrics) Exchange(e dhcp.Exchange) {
	m.packets.count(packet{e.Type, e.Decision})
	if e.Reply != "" {
		m.dhcpSeconds.Observe(e.Took.Seconds())
	}
}

// Transfer counts a TFTP transfer.
func (m *Metrics) Transfer(t tftp.Transfer) {
	m.tftpFiles.WithLabelValues(result(t.Err == nil)).Inc()
	m.tftpBytes.Add(float64(t.Bytes))
}

// TFTPDrop counts packets that TFTP did not answer.
func (m *Metrics) TFTPDrop(why tftp.Drop, packets int) {
	m.tftpDrops.WithLabelValues(string(why)).Add(float64(packets))
}

// Netconsole counts a datagram with lines of a kernel.
func (m *Metrics) Netconsole(kept bool) {
	result := "kept"
	if !kept {
		result = "dropped"
	}
	m.netconsole.WithLabelValues(result).Inc()
}

// Traces counts boots that were sent to a collector, or were not.
func (m *Metrics) Traces(boots int, err error) {
	result := "sent"
	if err != nil {
		result = "dropped"
	}
	m.traces.WithLabelValues(result).Add(float64(boots))
}

// Request counts a request of a node.
func (m *Metrics) Request(r httpboot.Request) {
	m.httpAnswers.WithLabelValues(r.Route, strconv.Itoa(r.Status)).Inc()
	m.httpBytes.WithLabelValues(r.Route).Add(float64(r.Bytes))
	if r.Admitted {
		m.images.waited.Observe(r.Waited.Seconds())
	}
}

// Step counts a new step of a boot.
func (m *Metrics) Step(b boots.Record, s boots.StepTime) {
	m.bootSteps.WithLabelValues(b.Pool, string(s.Step), result(s.Error == "")).Inc()
	if s.Error == "" {
		m.stepSeconds.WithLabelValues(string(s.Step)).Observe(s.Time.Sub(b.Started).Seconds())
		if took, ok := b.Took(s); ok {
			m.stepTook.WithLabelValues(string(s.Step)).Observe(took.Seconds())
		}
	}
}

// Reloaded counts an attempt to reload the config.
func (m *Metrics) Reloaded(ok bool) { m.reloads.WithLabelValues(result(ok)).Inc() }

// Reconciled counts a reconciliation of the Nodes of a cluster, and the Nodes that it
// changed.
func (m *Metrics) Reconciled(cluster string, changed int, err error) {
	m.reconciles.WithLabelValues(cluster, result(err == nil)).Inc()
	m.changes.WithLabelValues(cluster).Add(float64(changed))
}

// AnswerRefused counts an answer of a cluster's API server that was not read.
func (m *Metrics) AnswerRefused(cluster string) { m.unread.WithLabelValues(cluster).Inc() }

// Certificate counts a certificate request.
func (m *Metrics) Certificate(r approve.Request) {
	m.requests.WithLabelValues(r.Cluster, r.Result).Inc()
}

// number is 1 for true, and 0 for false.
func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

func result(ok bool) string {
	if ok {
		return "ok"
	}
	return "error"
}
