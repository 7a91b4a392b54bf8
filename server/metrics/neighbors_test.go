package metrics_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"drover/e2e/farmtest"
	"drover/server/metrics"
)

// The metrics have the size of the kernel's neighbor tables, and the entries that the farm
// takes.
func TestNeighbors(t *testing.T) {
	store, live := farmtest.Open(t, `server: {interfaces: [lo], address: 127.0.0.1}
subnets: [{cidr: 127.28.0.0/16}]
pools: [{name: rest, catchall: true, ignore: true, range: 127.28.64.1-127.28.67.232}]
`)
	m := metrics.New(live, store)
	m.WatchNeighbors(live, fstest.MapFS{
		"sys/net/ipv4/neigh/default/gc_thresh3": {Data: []byte("1024\n")},
		"sys/net/ipv6/neigh/default/gc_thresh3": {Data: []byte("1024\n")},
	})
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{`drover_neighbor_table_limit{family="ipv4"} 1024`, `drover_neighbor_table_need{family="ipv4"} 1378`, `drover_neighbor_table_need{family="ipv6"} 0`} {
		if !strings.Contains(w.Body.String(), want+"\n") {
			t.Errorf("no %s in the metrics", want)
		}
	}
}
