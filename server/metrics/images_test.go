package metrics_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"drover/e2e/farmtest"
	"drover/e2e/fixture"
	"drover/pools/boots"
	"drover/server/metrics"
)

func TestImages(t *testing.T) {
	store, live := farmtest.Open(t, "server: {interfaces: [lo], address: 127.0.0.1}\nsubnets: [{cidr: 127.28.0.0/16}]\npools: [{name: web, ignore: true}]\n")
	m := metrics.New(live, store)
	all := []boots.Record{
		{Node: "m1", Image: "debian-12", Generation: strings.Repeat("b", 64)}, {Node: "m1", Image: "debian-12", Generation: strings.Repeat("a", 64)},
		{Node: "m2", Image: "debian-12@sha256:" + strings.Repeat("b", 64), Generation: strings.Repeat("b", 64)}, {Node: "m3", Image: "debian-12"},
	}
	for n := range 200 { // generations without bound are not series without bound
		all = append(all, boots.Record{Node: fmt.Sprint(n), Image: "lab", Generation: fmt.Sprintf("%012d%052d", n, 0)})
	}
	m.WatchImages(func() []boots.Record { return all }, func() int { return 7 })
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	text := w.Body.String()
	fixture.WantText(t, "metrics", text, "drover_fallback_nodes 7\n", `drover_image_nodes{generation="bbbbbbbbbbbb",image="debian-12"} 2`+"\n", `drover_image_nodes{generation="other",image="other"} `)
	fixture.WantNoText(t, "metrics", text, "aaaaaaaaaaaa")
	if n := strings.Count(text, "drover_image_nodes{"); n != 101 {
		t.Errorf("got %d series, want 101", n)
	}
}
