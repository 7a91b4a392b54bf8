package metrics_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"regexp"
	"runtime"
	"testing"
	"testing/fstest"
	"time"

	"drover/cmd/drover/server/metrics"
	"drover/cmd/drover/server/readiness"
	"drover/e2e/farmtest"
	"drover/e2e/fixture"
	"drover/pools"
)

// The metrics have the machines of each pool of the config by state, the sizes of ranges,
// the space of directories, and the ends of credentials.
func TestFarm(t *testing.T) {
	store, live := farmtest.Open(t, `server: {interfaces: [lo], address: 127.0.0.1}
subnets: [{cidr: 127.28.0.0/16}]
pools:
  - {name: web, ignore: true, nodes: [{name: n1, macs: ["52:54:00:77:01:01"], ip: 127.28.1.1}]}
  - {name: rest, catchall: true, ignore: true, range: 127.28.64.1-127.28.67.232}
`)
	m := metrics.New(live, store)
	m.Build("v1.2.3")
	m.CertificateEnd("api", func() time.Time { return time.Unix(1900000000, 0) })
	m.WatchNodes(live, func() map[string]map[pools.NodeState]int {
		return map[string]map[pools.NodeState]int{"web": {pools.NodeReady: 7, pools.NodeStuck: 1}, "of the config before": {pools.NodeReady: 1}}
	})
	dir := t.TempDir()
	checks := &readiness.Checks{
		Live: live, Disks: readiness.NewDisks(slog.New(slog.DiscardHandler), dir, dir, dir+"/missing", store), State: store,
		Clusters: func(context.Context) map[string]error { return nil }, Chassis: func() map[string]string { return nil }, Proc: fstest.MapFS{},
		Expiries: func() map[string]time.Time { return map[string]time.Time{"tenant-a": time.Unix(1800000000, 0)} },
		Renewals: func() map[string]error { return map[string]error{"tenant-a": errors.New("forbidden"), "tenant-b": nil} },
	}
	m.WatchReadiness(checks)
	go func() { _ = checks.Disks.Run(t.Context()) }()
	scrape := func() string {
		w := httptest.NewRecorder()
		m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		return w.Body.String()
	}
	fixture.Eventually(t, "the space of the state is known", func() bool {
		return regexp.MustCompile(`(?m)^drover_directory_free_bytes{directory="state"} [1-9]`).MatchString(scrape())
	})
	text := scrape()
	fixture.WantText(t, "metrics", text,
		`drover_build_info{goversion="`+runtime.Version()+`",version="v1.2.3"} 1`+"\n",
		`drover_nodes{pool="web",state="ready"} 7`+"\n", `drover_nodes{pool="web",state="stuck"} 1`+"\n", `drover_nodes{pool="web",state="new"} 0`+"\n",
		`drover_nodes{pool="rest",state="ready"} 0`+"\n",
		`drover_lease_range_addresses{pool="rest"} 1000`+"\n",
		`drover_leases_active{pool="rest"} 0`+"\n",
		`drover_certificate_expiry_timestamp_seconds{listener="api"} 1.9e+09`+"\n",
		`drover_cluster_credentials_expiry_timestamp_seconds{cluster="tenant-a"} 1.8e+09`+"\n",
		`drover_cluster_credentials_last_renewal_successful{cluster="tenant-a"} 0`+"\n", `drover_cluster_credentials_last_renewal_successful{cluster="tenant-b"} 1`+"\n",
		"drover_config_restart_pending 0\n", "drover_config_last_reload_successful 1\n",
	)
	fixture.WantNoText(t, "metrics", text, "of the config before", `drover_lease_range_addresses{pool="web"}`, `directory_free_bytes{directory="loaders"}`, "drover_pool_image_info{")
}
