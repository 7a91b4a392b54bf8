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

	"drover/e2e/farmtest"
	"drover/e2e/fixture"
	"drover/pools"
	"drover/pools/config"
	"drover/server/metrics"
	"drover/server/readiness"
	"drover/state"
)

// The metrics have the machines of each pool of the config by state, the sizes of ranges,
// the space of directories, and the ends of credentials.
func TestFarm(t *testing.T) {
	store, live := farmtest.Open(t, `server: {interfaces: [lo], address: 127.0.0.1}
subnets: [{cidr: 127.28.0.0/16, dns: [127.28.64.1]}, {cidr: "fd00::/64"}]
clusters: [{name: tenant-a, kubeconfig: a.kubeconfig}, {name: tenant-b, kubeconfig: b.kubeconfig}]
pools:
  - {name: web, ignore: true, nodes: [{name: n1, macs: ["52:54:00:77:01:01"], ip: 127.28.1.1}, {name: n2, macs: ["52:54:00:77:01:02"], ip: 127.28.64.2}]}
  - {name: rest, catchall: true, ignore: true, range: 127.28.64.1-127.28.67.232, range6: "fd00::1:0-fd00::1:ffff"}
`)
	leased(t, store, live)
	m := metrics.New(live, store)
	m.Build("v1.2.3")
	m.CertificateEnd("api", func() time.Time { return time.Unix(1900000000, 0) })
	m.WatchNodes(live, func() map[string]map[pools.NodeState]int {
		return map[string]map[pools.NodeState]int{"web": {pools.NodeReady: 7, pools.NodeStuck: 1}, "of the config before": {pools.NodeReady: 1}}
	})
	dir := t.TempDir()
	checks := &readiness.Checks{
		Live: live, Disks: readiness.NewDisks(slog.New(slog.DiscardHandler), dir, dir, dir+"/missing", store), State: store,
		Clusters: func(context.Context) map[string]error {
			return map[string]error{"tenant-a": errors.New("it does not answer"), "tenant-b": nil}
		}, Chassis: func() map[string]string { return nil }, Proc: fstest.MapFS{},
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
		`drover_lease_range_addresses{family="ipv4",pool="rest"} 998`+"\n", `drover_lease_range_free{family="ipv4",pool="rest"} 996`+"\n", // without the name server and n2
		`drover_leases_active{family="ipv4",pool="rest"} 1`+"\n",
		`drover_lease_range_addresses{family="ipv6",pool="rest"} 65536`+"\n", `drover_lease_range_free{family="ipv6",pool="rest"} 65535`+"\n",
		`drover_leases_active{family="ipv6",pool="rest"} 1`+"\n",
		`drover_cluster_ready{cluster="tenant-a"} 0`+"\n", `drover_cluster_ready{cluster="tenant-b"} 1`+"\n",
		`drover_certificate_requests_total{cluster="tenant-a",result="denied"} 0`+"\n", // before the first
		`drover_boot_steps_total{pool="web",result="error",step="joined"} 0`+"\n",
		`drover_certificate_expiry_timestamp_seconds{listener="api"} 1.9e+09`+"\n",
		`drover_cluster_credentials_expiry_timestamp_seconds{cluster="tenant-a"} 1.8e+09`+"\n",
		`drover_cluster_credentials_last_renewal_successful{cluster="tenant-a"} 0`+"\n", `drover_cluster_credentials_last_renewal_successful{cluster="tenant-b"} 1`+"\n",
		"drover_config_restart_pending 0\n", "drover_config_last_reload_successful 1\n",
	)
	fixture.WantNoText(t, "metrics", text, "of the config before", `drover_lease_range_addresses{family="ipv4",pool="web"}`, `directory_free_bytes{directory="loaders"}`, "drover_pool_image_info{")
}

// leased leases an address of each family, and puts another one in quarantine.
func leased(t *testing.T, store *state.Store, live *config.Live) {
	t.Helper()
	rest := live.Farm().Config.Pools[1]
	a, b := pools.MAC{2, 1}, pools.MAC{2, 2}
	farmtest.Lease(t, store.Leases, rest.Name, a, rest.Range.Last)
	farmtest.Lease(t, store.Leases6, rest.Name, a, rest.Range6.Last)
	farmtest.Lease(t, store.Leases, rest.Name, b, rest.Range.Last.Prev())
	farmtest.Decline(t, store.Leases, b, rest.Range.Last.Prev())
}
