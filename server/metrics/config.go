package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"drover/pools/config"
)

// configGauges collects the state of the config file at each scrape.
type configGauges struct {
	live                                    *config.Live
	successful, loaded, info, restart, held *prometheus.Desc
}

func newConfigGauges(live *config.Live) *configGauges {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("drover_config_"+name, help, labels, nil)
	}
	return &configGauges{
		live:       live,
		successful: desc("last_reload_successful", "1 if the config file is in force, 0 if it was refused."),
		loaded:     desc("last_reload_success_timestamp_seconds", "When a content of the config file last came into force; not there if none has since the start."),
		info:       desc("info", "The content in force, by its SHA-256.", "sha256"),
		restart:    desc("restart_pending", "1 if a part of the config waits for a restart of the server."),
		held:       desc("held", "Nodes that the change of the config file would disrupt, which is not active though it has no mistake, by the reason: brake, dropped, rollback; not there if the file is active or refused.", "reason"),
	}
}

// Describe implements [prometheus.Collector].
func (g *configGauges) Describe(all chan<- *prometheus.Desc) {
	all <- g.successful
	all <- g.loaded
	all <- g.info
	all <- g.restart
	all <- g.held
}

// Collect implements [prometheus.Collector].
func (g *configGauges) Collect(all chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		all <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	status := g.live.Status()
	gauge(g.successful, number(status.Refused == nil))
	gauge(g.restart, number(g.live.NeedsRestart()))
	if h := status.Held; h != nil {
		gauge(g.held, float64(h.Size.Disrupted), string(h.Why))
	}
	if !status.Since.IsZero() {
		gauge(g.loaded, float64(status.Since.UnixMilli())/1000)
		gauge(g.info, 1, status.Digest)
	}
}
