package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/e2e/ilosim"
	"drover/pools"
)

// TestPowerOverAPI: two chassis and a machine with a program of its own, switched
// by a server; what was done is known afterwards.
func TestPowerOverAPI(t *testing.T) {
	one, two := ilosim.New(1, 2, 1, 1), ilosim.New(2, 2, 1, 1)
	one.PowerDelay, two.PowerDelay = 20*time.Millisecond, 20*time.Millisecond
	one.Profile = ilosim.Legacy14
	h, store, log := hardwareSite(t, fmt.Sprintf(`[
  {name: m1, address: "%s", passwordFile: pass, pool: compute, legacy: true, ipTemplate: "10.28.7.{{.Cartridge}}", interval: 1h},
  {name: m2, address: "%s", passwordFile: pass, pool: compute, tags: [debug], ipTemplate: "10.28.8.{{.Cartridge}}", interval: 1h}]`, manager(t, one), manager(t, two)))
	fixture.Eventually(t, "both are stored", func() bool { return len(h.Farm.Farm().Nodes()) == 6 })
	for _, tt := range []struct {
		line     string
		code     int
		out, err string
	}{
		{"status chassis=m1", 0, "m1c1n1   off    -\nm1c2n1   off    -\n", ""},
		{"pxe chassis=m1 -y", 0, "m1c1n1   on     -\nm1c2n1   on     -\n", "m1c1n1: "},
		{"off m1c2n1,m2c1n1", 0, "m1c2n1   off    -\nm2c1n1   off    -\n", ""},
		{"on h1,m2c2n1", 0, "h1       on     -\nm2c2n1   on     -\n", ""},
		{"cycle tag=debug -y", 0, "h1       on     -\nm2c1n1   off    -\nm2c2n1   on     -\n", ""},
		{"cycle tag=debug", 2, "", "power cycle: h1 m2c1n1 m2c2n1\npower cycle of 3 machines? [y/N]"},
		{"on m2c[1-2]n1", 2, "", "there was no answer (-y says yes)"},
		{"on m2c[1-2]n1 -y --max-parallel 1", 0, "m2c1n1   on     -\nm2c2n1   on     -\n", ""},
		{"on m2c[1-", 2, "", "a [ without ]"},
		{"on h1 --max-parallel -1", 2, "", "--max-parallel -1"},
		{"off tag=debug,pool=hooked -y", 0, "h1       off    -\n", ""},
		{"status m1,h1", 3, "h1       off      -\n", "m1: drover cannot switch it"},
		{"status m1", 1, "m1       unknown  drover cannot", "power: of its own"},
		{"status nobody", 1, "", `no such node: "nobody"`},
		{"status chassis=m3", 1, "", "no node fits"},
		{"status chassis=m1,m2c1n1", 2, "", "which must all fit"},
		{"status rack=7", 2, "", "unknown key \"rack\""},
		{"status chassis=m1,state=new", 0, "m1c1n1   on     -\nm1c2n1   off    -\n", ""},
		{"status from=chassis,chassis!=m1", 0, "m2c1n1   on     -\nm2c2n1   on     -\n", ""},
		{"off state=new,chassis=m1", 2, "", "power off of 2 machines? [y/N]"},
		{"off state=stuck -y", 1, "", "no node fits state=stuck now"},
		{"off state=stuk -y", 2, "", "unknown state"},
		{"off state=new,m1c1n1 -y", 2, "", "want pool=NAME"},
		{"status pool=a,pool=b", 2, "", "there twice"},
		{"status m1c1n1 -c drover.yaml", 2, "", "--config is for --chassis"},
	} {
		code, out, errs := drover(t, "power "+tt.line+" --poll 5ms --wait 30s")
		if code != tt.code || !strings.Contains(out, tt.out) || !strings.Contains(errs, tt.err) {
			t.Errorf("drover power %s: exit %d\n%s%s\nwant exit %d\n%s%s", tt.line, code, out, errs, tt.code, tt.out, tt.err)
		}
	}
	all, err := store.Audit.List(100)
	if err != nil {
		t.Fatal(err)
	}
	audit := map[string]int{}
	for _, e := range all {
		if !strings.HasPrefix(e.Actor, "chassis ") && !strings.HasPrefix(e.Actor, "token from 127.0.0.1:") {
			t.Errorf("actor is %q", e.Actor)
		}
		audit[e.Action+" "+e.Node+" "+e.Result]++
	}
	for _, want := range []string{"power pxe m1c1n1 begun", "power pxe m1c1n1 on", "power off m2c1n1 off", "power on h1 on", "power cycle m2c2n1 on", "add node m2c2n1 done"} {
		if audit[want] != 1 {
			t.Errorf("audit has %q %d times: %v", want, audit[want], audit)
		}
	}
	if strings.Contains(fmt.Sprint(audit), "power status") {
		t.Errorf("a question is no deed: %v", audit)
	}
	if got := log.String(); !strings.Contains(got, `command="pxe once"`) {
		t.Errorf("the log says\n%s", got)
	}
	metrics := scrape(t)
	for _, want := range []string{
		`drover_chassis_nodes{chassis="m1"} 2`, `drover_chassis_syncs_total{chassis="m2",result="ok"} 1`, `drover_power_actions_total{action="pxe",result="ok"} 2`,
		`drover_chassis_last_success_timestamp_seconds{chassis="m1"} 1.`, `drover_chassis_interval_seconds{chassis="m1"} 3600`, `drover_power_actions_total{action="status",result="error"} 2`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("want %s in\n%s", want, metrics)
		}
	}
}

// scrape reads the metrics as Prometheus does.
func scrape(t *testing.T) string {
	t.Helper()
	token, err := os.ReadFile(os.Getenv("DROVER_TOKEN_FILE"))
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, os.Getenv("DROVER_API")+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestPowerUnknown: a state that is not known is not taken for off, and one
// chassis that hangs does not keep another from being switched.
func TestPowerUnknown(t *testing.T) {
	one, two := ilosim.New(1, 2, 1, 1), ilosim.New(2, 1, 1, 1)
	h, store, _ := hardwareSite(t, fmt.Sprintf(`[
  {name: m1, address: "%s", passwordFile: pass, pool: compute, ipTemplate: "10.28.7.{{.Cartridge}}", interval: 1h},
  {name: m2, address: "%s", passwordFile: pass, pool: compute, ipTemplate: "10.28.8.{{.Cartridge}}", interval: 1h}]`, manager(t, one), manager(t, two)))
	fixture.Eventually(t, "both are stored", func() bool { return len(h.Farm.Farm().Nodes()) == 5 })
	one.HoldPower("c1n1", "Unavailable")
	code, out, errs := drover(t, "power pxe chassis=m1 -y --poll 5ms --wait 5s")
	if code != 3 || !strings.Contains(out, "m1c1n1   unavailable") || !strings.Contains(out, "m1c2n1   on ") || !strings.Contains(errs, "should be off") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	one.Inject(ilosim.Silent, ilosim.Always)
	stuck, err := h.Switch(t.Context(), "test", pools.PowerRequest{Action: "off", Chassis: "m1"})
	if err != nil {
		t.Fatal(err)
	}
	if code, out, errs := drover(t, "power on m2c1n1 --poll 5ms"); code != 0 {
		t.Errorf("another chassis: exit %d\n%s%s", code, out, errs)
	}
	fixture.Eventually(t, "the order for the chassis that hangs is over", func() bool { j, ok := h.Job(stuck.ID); return ok && !j.Ended.IsZero() })
	j, _ := h.Job(stuck.ID)
	for _, n := range j.Nodes {
		if n.State != "unknown" || n.Error == "" {
			t.Errorf("%s is %s: %q", n.Name, n.State, n.Error)
		}
	}
	one.Clear(ilosim.Silent)
	if got := one.Power("c2n1"); got != "On" {
		t.Errorf("c2n1 is %s", got)
	}

	// What cannot be noted is not done.
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Switch(t.Context(), "test", pools.PowerRequest{Action: "off", Nodes: []string{"m2c1n1"}}); err == nil || two.Power("c1n1") != "On" {
		t.Errorf("without an audit: %v, and the node is %s", err, two.Power("c1n1"))
	}
}

// TestPowerDrains: machines are drained before they are switched off. One whose pods do not go
// is not switched, and the others are.
func TestPowerDrains(t *testing.T) {
	one := ilosim.New(1, 3, 1, 1)
	one.PowerDelay = 20 * time.Millisecond
	h, _, _ := hardwareSite(t, fmt.Sprintf(`[{name: m1, address: "%s", passwordFile: pass, pool: compute, ipTemplate: "10.28.7.{{.Cartridge}}", interval: 1h}]`, manager(t, one)))
	fixture.Eventually(t, "it is stored", func() bool { return len(h.Farm.Farm().Nodes()) == 5 })
	var mu sync.Mutex
	var happened []string
	note := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		happened = append(happened, fmt.Sprintf(format, args...))
	}
	h.Drain = func(_ context.Context, node string, limit time.Duration, progress func(string)) (func(bool), error) {
		progress("2 pods left")
		note("%s is on: %v", node, one.Power(strings.TrimPrefix(node, "m1")) == "On")
		if node == "m1c2n1" {
			return nil, fmt.Errorf("it is not drained after %s: 1 pod left", limit)
		}
		return func(switched bool) { note("%s was switched: %v", node, switched) }, nil
	}
	for _, tt := range []struct {
		line     string
		code     int
		out, err string
		happened []string
	}{
		{"on chassis=m1 -y", 0, "m1c3n1   on ", "", nil},
		{"off chassis=m1 -y --drain=90s", 3, "m1c1n1   off", "m1c2n1: not switched: it is not drained after 1m30s: 1 pod left",
			[]string{"m1c1n1 is on: true", "m1c1n1 was switched: true", "m1c2n1 is on: true", "m1c3n1 is on: true", "m1c3n1 was switched: true"}},
		{"cycle m1c2n1 --drain", 1, "m1c2n1   unknown", "not drained after 5m0s", []string{"m1c2n1 is on: true"}},
		{"cycle m1c2n1", 0, "m1c2n1   on ", "", nil},
		{"on m1c1n1 --drain", 2, "", "unknown flag: --drain", nil},
		{"off m1c1n1 --drain=2h", 1, "", "drain 2h is not from nothing to 1h", nil},
		{"off c1n1 --drain --chassis m1=127.0.0.1", 2, "", "--drain wants a time, and a server", nil},
	} {
		happened = nil
		code, out, errs := drover(t, "power "+tt.line+" --poll 5ms --wait 30s")
		slices.Sort(happened)
		if code != tt.code || !strings.Contains(out, tt.out) || !strings.Contains(errs, tt.err) || !slices.Equal(happened, tt.happened) {
			t.Errorf("drover power %s: exit %d\n%s%s%q\nwant exit %d\n%s%s%q", tt.line, code, out, errs, happened, tt.code, tt.out, tt.err, tt.happened)
		}
	}
	if got := one.Power("c2n1"); got != "On" {
		t.Errorf("the machine that was not drained is %s", got)
	}
	if _, err := h.Preview(pools.PowerRequest{Action: "on", Nodes: []string{"m1c1n1"}, Drain: 1}); err == nil || !strings.Contains(err.Error(), "a drain is for") {
		t.Errorf("a drain before machines are switched on: %v", err)
	}
}
