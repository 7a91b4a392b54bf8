package server

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"drover/pools"
	"drover/pools/resolve"
)

// TestNoGhosts: of 5 000 nodes that all began to boot 300 stay. The page, the API and the
// metrics count those alone, at once and after a restart with a smaller file.
func TestNoGhosts(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(n int) {
		t.Helper()
		var nodes strings.Builder
		for i := range n {
			fmt.Fprintf(&nodes, "      - {name: g%d, macs: [\"52:54:00:00:%02x:%02x\"], ip: 10.28.%d.%d}\n", i, i>>8, i&255, 1+i/250, 1+i%250)
		}
		text := "server: {dhcp: \"off\", address: 10.28.0.2, brake: {nodes: 0}}\nsubnets: [{cidr: 10.28.0.0/16}]\npools:\n  - name: web\n    image: debian-12\n    nodes:\n" + nodes.String()
		if err := os.WriteFile("drover.yaml", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	start := func() *Server {
		t.Helper()
		s, err := New(Options{Config: "drover.yaml", State: "state", Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	write(5000)
	s := start()
	long := time.Now().Add(-time.Hour)
	for _, n := range s.Live.Farm().Nodes() {
		s.Store.Boots.Discover(s.Live.Farm().Resolve(resolve.Query{MAC: n.MACs[0]}), long)
	}
	for _, name := range []string{"g10", "g4999"} {
		if err := s.Store.NextBoots.Set("local", name); err != nil {
			t.Fatal(err)
		}
	}
	check := func(when string, want int) {
		t.Helper()
		w := httptest.NewRecorder()
		s.metrics.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
		if line := fmt.Sprintf("\ndrover_boots_stuck %d\n", want); !strings.Contains(w.Body.String(), line) {
			t.Errorf("%s: the metrics do not have%s", when, line)
		}
		got := 0
		for _, b := range s.boots().List() {
			if !b.Retired {
				got++
			}
		}
		if got != want {
			t.Errorf("%s: got %d boots, want %d", when, got, want)
		}
	}
	check("before", 5000)
	write(300)
	s.Reload("test")
	check("cut", 300)
	if got := len(s.Live.Farm().Retired()); got != 4700 {
		t.Errorf("%d nodes are retired, want 4700", got)
	}
	if err := s.Live.ForgetRetired("g4999"); err != nil {
		t.Fatal(err)
	}
	s.forgetRemoved()
	if got := s.Store.NextBoots.Pending("g10") + s.Store.NextBoots.Pending("g4999"); got != "local" {
		t.Errorf("next boots %q, want that of g10 alone", got)
	}
	s.Close()
	write(200)
	s = start()
	check("cut while the server was down", 200)
	defer func() { s.Close() }()
	mac := pools.MAC{0x02, 5: 1}
	added := pools.PoolNode{Pool: "web", Node: pools.Node{Name: "added", MACs: []pools.MAC{mac}, IP: netip.MustParseAddr("10.28.200.1")}}
	renamed := added
	renamed.Name = "renamed"
	if err := s.changes().AddNode(added); err != nil {
		t.Fatal(err)
	}
	s.Store.Boots.Discover(s.Live.Farm().Resolve(resolve.Query{MAC: mac}), long)
	if err := s.Store.NextBoots.Set("rescue", "added"); err != nil {
		t.Fatal(err)
	}
	if err := s.changes().ChangeNodes([]pools.NodeChange{{Old: &added, New: &renamed}}); err != nil {
		t.Fatal(err)
	}
	if b, ok := s.Store.Boots.Current(mac); !ok || b.Node != "renamed" || s.Store.NextBoots.Pending("renamed") != "rescue" {
		t.Errorf("a renamed node has the boot of %q, and the next boot %q", b.Node, s.Store.NextBoots.Pending("renamed"))
	}
	if err := s.changes().ChangeNodes([]pools.NodeChange{{Old: &renamed}}); err != nil {
		t.Fatal(err)
	}
	check("removed over the API", 200)
}
