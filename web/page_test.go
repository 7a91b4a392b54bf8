package web_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/pools/boots"
	"drover/web/api"
)

// boot returns a record that reached the first n steps, one each second, the last at the
// time ago before the epoch.
func boot(mac byte, node, cluster string, n int, ago time.Duration, failed string) boots.Record {
	start := epoch.Add(-ago - time.Duration(n-1)*time.Second)
	b := boots.Record{
		ID: node, MAC: pools.MAC{0x52, 0x54, 0, 0, 0, mac}, Node: node, Pool: "compute", Cluster: cluster,
		Image: "debian-12", Started: start, Error: failed,
	}
	steps := slices.DeleteFunc(boots.Steps(), func(s boots.StepInfo) bool { return s.Optional })
	for i, s := range steps[:n] {
		b.Steps = append(b.Steps, boots.StepTime{Step: s.Step, Time: start.Add(time.Duration(i) * time.Second)})
	}
	if failed != "" {
		b.Steps = append(b.Steps, boots.StepTime{Step: steps[n].Step, Time: epoch, Error: failed})
	}
	return b
}

// TestPage compares the page of a farm with machines in all states with a golden file.
func TestPage(t *testing.T) {
	golden, err := filepath.Abs("testdata/page.golden.html")
	if err != nil {
		t.Fatal(err)
	}
	s := newHarness(t, func(s *harness) {
		s.Boots = bootList{
			boot(1, "m1", "tenant-a", 16, 2*time.Hour, ""),
			boot(2, "m2", "tenant-a", 9, time.Minute, ""),
			boot(3, "n3", "tenant-a", 4, 10*time.Minute, ""),
			boot(4, "n4", "tenant-a", 8, time.Minute, `<script>alert("sha256")</script>`),
			boot(0x77, "node-525400000077", "lobby", 13, time.Minute, ""),
		}
		s.Ready = func(context.Context) []api.Problem {
			return []api.Problem{{Part: "image debian-12", Problem: "there is none"}}
		}
		l := someLeases()
		*l = append(*l, lease(0x77, 5*time.Minute), lease(2, time.Minute))
		s.Leases, s.Unknowns = l, someUnknowns()
	})
	n4 := strings.NewReplacer("n3", "n4", "00-03", "00-04", "0.13", "0.14")
	n5 := strings.NewReplacer("n3", "n5", "00-03", "00-05", "0.13", "0.15")
	for _, n := range []string{n3, n4.Replace(n3), n5.Replace(n3)} {
		if resp := s.do(request{method: "POST", path: "/api/v1/nodes", body: n}); resp.Code != 201 {
			t.Fatal(resp.Body.String())
		}
	}
	got := s.do(request{path: "/", anonymous: true, header: s.session(t)}).Body.String()
	if strings.Contains(got, "<script>alert") || strings.Contains(got, "<img") || strings.ContainsAny(got, "\x1b\u202e") || strings.Contains(got, strings.Repeat("A", 64)) {
		t.Error("the text of a machine is not escaped")
	}
	fixture.Golden(t, golden, got)
}

func TestStates(t *testing.T) {
	late := boot(1, "m1", "tenant-a", 13, time.Hour, "")
	late.Steps = append(late.Steps, boots.StepTime{Step: boots.StepReady, Time: epoch.Add(-time.Hour)},
		boots.StepTime{Step: boots.StepJoined, Time: epoch.Add(-time.Hour)})
	queued := func(ago time.Duration) boots.Record {
		b := boot(1, "m1", "tenant-a", 8, ago, "")
		b.Steps = append(b.Steps, boots.StepTime{Step: boots.StepQueued, Time: epoch.Add(-ago)})
		return b
	}
	tests := []struct {
		name string
		boot boots.Record
		want string
	}{
		{"waits for its turn", queued(20 * time.Minute), "booting"},
		{"waits for ever", queued(time.Hour), "stuck"},
		{"just begun", boot(1, "m1", "tenant-a", 1, 0, ""), "booting"},
		{"three minutes without progress", boot(1, "m1", "tenant-a", 6, 3*time.Minute, ""), "booting"},
		{"and a bit", boot(1, "m1", "tenant-a", 6, 3*time.Minute+1, ""), "stuck"},
		{"an error", boot(1, "m1", "tenant-a", 6, 0, "no route"), "failing"},
		{"an error long ago", boot(1, "m1", "tenant-a", 6, time.Hour, "no route"), "failing"},
		{"ready", boot(1, "m1", "tenant-a", 16, time.Hour, ""), "ready"},
		{"joined, not ready", boot(1, "m1", "tenant-a", 15, time.Minute, ""), "booting"},
		{"ready before it says that it joined", late, "ready"},
		{"online, and no cluster to join", boot(1, "m1", "", 12, time.Hour, ""), "ready"},
		{"online, and a cluster to join", boot(1, "m1", "tenant-a", 12, time.Hour, ""), "stuck"},
		{"never seen", boots.Record{MAC: pools.MAC{2}}, "unseen"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newHarness(t, func(s *harness) { s.Boots = bootList{tt.boot} })
			page := s.do(request{path: "/", anonymous: true, header: s.session(t)}).Body.String()
			if want := `<tr id="machine-m1" class="` + tt.want + `">`; !strings.Contains(page, want) {
				_, row, _ := strings.Cut(page, `<tr id="machine-m1"`)
				t.Errorf("want %s, got %.40s", want, row)
			}
		})
	}
}

// TestNodeKnownByItsPort: a node without MACs is one row, with its last booted machine.
func TestNodeKnownByItsPort(t *testing.T) {
	s := newHarness(t, func(s *harness) { s.Boots = bootList{boot(9, "p1", "tenant-a", 16, time.Hour, "")} })
	if resp := s.do(request{method: "POST", path: "/api/v1/nodes", body: `{"pool": "compute", "name": "p1", "ip": "10.28.0.19", "match": {"circuitID": "eth7"}}`}); resp.Code != 201 {
		t.Fatal(resp.Body.String())
	}
	page := s.do(request{path: "/", anonymous: true, header: s.session(t)}).Body.String()
	if n := strings.Count(page, `id="machine-p1"`); n != 1 || !strings.Contains(page, `<tr id="machine-p1" class="ready">`) || !strings.Contains(page, "52:54:00:00:00:09") {
		t.Errorf("got %d rows:\n%s", n, page)
	}
}
