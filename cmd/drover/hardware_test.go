package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"drover/e2e/farmtest"
	"drover/e2e/fixture"
	"drover/e2e/ilosim"
	"drover/hardware"
	"drover/hardware/bmc"
	"drover/pools"
	"drover/pools/config"
	"drover/server"
	"drover/server/metrics"
	"drover/state"
	"drover/web"
)

// hardwareConfig is apiConfig with chassis; CHASSIS is where they go.
const hardwareConfig = `server: {interfaces: [eth1], address: 10.28.0.2}
subnets: [{cidr: 10.28.0.0/16, router: 10.28.0.1}]
tags: {debug: {kernelArgs: debug}}
pools:
  - {name: compute, image: debian-12, nodes: [{name: m1, macs: ["52:54:00:00:00:01"], ip: 10.28.0.11}]}
  - {name: hooked, image: debian-12, tags: [debug], nodes: [
      {name: h1, macs: ["52:54:00:00:00:02"], ip: 10.28.0.12, power: {driver: exec, program: ./hook}}]}
chassis: CHASSIS
`

// manager starts a chassis and returns where it listens.
func manager(t *testing.T, c *ilosim.Chassis) string {
	t.Helper()
	s, err := c.ServeSSH("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s.Addr
}

// writeFiles writes what the config names.
func writeFiles(t *testing.T, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

// hardwareSite is the REST API with chassis, under way until the test ends.
func hardwareSite(t *testing.T, chassis string) (*hardware.Service, *state.Store, *fixture.Log) {
	t.Helper()
	store, live := farmtest.Open(t, strings.ReplaceAll(hardwareConfig, "CHASSIS", chassis))
	writeFiles(t, map[string]string{
		"pass": "correct horse\n", "wrong": "wrong horse\n",
		"hook": "#!/bin/sh\n[ $1 = status ] && cat state.$2 || echo $1 > state.$2\n", "state.h1": "off\n",
	})
	log := &fixture.Log{}
	h := hardware.New()
	h.Farm, h.Nodes, h.Log = live, live, slog.New(slog.NewTextHandler(log, nil))
	h.Audit, h.Switcher = store.Audit, bmc.Switcher{Poll: 5 * time.Millisecond, Wait: time.Minute}
	h.Login = bmc.Login{
		HostKeys: &bmc.Pins{Path: "known_hosts"}, Certs: &bmc.Pins{Path: "known_certs"},
		Timeouts: bmc.Timeouts{Handshake: 6 * time.Second, Backoff: time.Millisecond},
	}
	m := metrics.New(live, store)
	m.WatchHardware(h)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if strings.Contains(log.String(), "horse") {
			t.Error("a password is in the log")
		}
	})
	serveSite(t, &web.Server{API: apiOf(store, live, h), Metrics: m.Handler()})
	return h, store, log
}

// rewrite changes the config, and has it taken.
func rewrite(t *testing.T, h *hardware.Service, chassis string) {
	t.Helper()
	writeFiles(t, map[string]string{"drover.yaml": strings.ReplaceAll(hardwareConfig, "CHASSIS", chassis)})
	if err := h.Farm.(*config.Live).Reload(); err != nil {
		t.Fatal(err)
	}
	h.Reload()
}

// statusOf is how a chassis is; the zero status while it is not known.
func statusOf(h *hardware.Service, name string) pools.ChassisStatus {
	for _, c := range h.Chassis() {
		if c.Name == name {
			return c
		}
	}
	return pools.ChassisStatus{}
}

// TestChassisSync is the life of a chassis of the config: found unprompted, changed,
// in conflict, and gone. Another that says nothing holds up nobody.
func TestChassisSync(t *testing.T) {
	c, silent := ilosim.New(1, 4, 1, 2), ilosim.New(2, 4, 1, 2)
	silent.Inject(ilosim.Silent, ilosim.Always)
	config := fmt.Sprintf(`[
  {name: m1, address: "%s", passwordFile: pass, pool: compute, ipTemplate: "10.28.7.{{.Cartridge}}", interval: 1h},
  {name: m2, address: "%s", passwordFile: pass, pool: compute, ipTemplate: "10.28.8.{{.Cartridge}}", interval: 1h}]`, manager(t, c), manager(t, silent))
	h, _, _ := hardwareSite(t, config)
	fixture.Eventually(t, "m1 is stored by itself", func() bool { return len(h.Farm.Farm().Nodes()) == 6 })
	fixture.Eventually(t, "m2 is in trouble", func() bool { return statusOf(h, "m2").Error != "" })
	if w := h.Warnings(); len(w) != 1 || w["m2"] == "" || strings.Contains(w["m2"], "drover chassis sync") {
		t.Errorf("warnings: %v", w)
	}
	sync := func(line string, code int, out, errs string) {
		t.Helper()
		if gotCode, gotOut, gotErrs := drover(t, line); gotCode != code || gotOut != out || !strings.Contains(gotErrs, errs) || errs == "" && gotErrs != "" {
			t.Errorf("drover %s: exit %d\n%s%s\nwant exit %d\n%s%s", line, gotCode, gotOut, gotErrs, code, out, errs)
		}
	}
	sync("chassis sync m1", 0, "m1: 4 nodes: 4 same\n", "")
	if code, out, _ := drover(t, "node list"); code != 0 || !strings.Contains(out, "m1c1n1  compute  10.28.7.1   new    -    -     chassis m1 c1n1 ") {
		t.Errorf("nodes: exit %d\n%s", code, out)
	}
	if code, out, _ := drover(t, "chassis list"); code != 0 || !strings.Contains(out, "4 same") || !strings.Contains(out, "unreachable") {
		t.Errorf("chassis: exit %d\n%s", code, out)
	}

	c.Swap("c3n1", "c4n1")
	c.Edit("c1n1", func(n *ilosim.Node) { n.MACs = []string{"52:54:00:00:00:01"} }) // m1's, in drover.yaml
	c.Edit("c2n1", func(n *ilosim.Node) { n.MACs = []string{"N/A", "N/A"} })
	sync("chassis sync m1", 0, "m1: 4 nodes: 2 changed, 1 incomplete, 1 conflict\n", `m1c1n1: MAC 52:54:00:00:00:01 is already that of node "m1" in drover.yaml:5`)
	sync("chassis sync m1 nope", 3, "m1: 4 nodes: 2 same, 1 incomplete, 1 conflict\n", `no such chassis in the config "nope"`)
	if _, out, _ := drover(t, "audit --node m1c3n1"); strings.Count(out, "\n") != 3 || !strings.Contains(out, "chassis m1  change node  m1c3n1") {
		t.Errorf("audit:\n%s", out)
	}

	// Another template is for new nodes; those that are known stay.
	config = strings.Replace(config, "interval: 1h", `nameTemplate: "rack1-{{.Slot}}", interval: 1h`, 1)
	c.Put(ilosim.Node{Cartridge: 9, Number: 1, MACs: []string{"94:57:a5:01:09:00"}})
	rewrite(t, h, config)
	fixture.Eventually(t, "the new node has the new name", func() bool { _, ok := h.Farm.Farm().Node("rack1-c9n1"); return ok })
	if n := len(h.Farm.Farm().Nodes()); n != 7 {
		t.Errorf("got %d nodes, want the 6 before and one more", n)
	}
	rewrite(t, h, "[]")
	fixture.Eventually(t, "no chassis is left", func() bool { return len(h.Chassis()) == 0 })
	if n := len(h.Farm.Farm().Nodes()); n != 7 {
		t.Errorf("got %d nodes after the chassis are gone from the config, want 7", n)
	}
}

// TestChassisPassword: a wrong one is tried once, and again when somebody has
// mended it.
func TestChassisPassword(t *testing.T) {
	c := ilosim.New(1, 2, 1, 1)
	config := fmt.Sprintf(`[{name: m1, address: "%s", passwordFile: wrong, pool: compute, ipTemplate: "10.28.7.{{.Cartridge}}", interval: 10s}]`, manager(t, c))
	h, _, log := hardwareSite(t, config)
	fixture.Eventually(t, "m1 is given up", func() bool { return statusOf(h, "m1").Stopped })
	rewrite(t, h, config) // nothing has changed
	rewrite(t, h, strings.Replace(config, "[{", `[{name: m2, address: "127.0.0.1:1", passwordFile: pass, pool: compute}, {`, 1))
	fixture.Eventually(t, "m2 is known", func() bool { return len(h.Chassis()) == 2 })
	if got := c.Logins(); got != 1 {
		t.Errorf("a wrong password was tried %d times", got)
	}
	if w := h.Warnings(); len(w) != 1 || !strings.Contains(w["m1"], "drover chassis sync m1") {
		t.Errorf("warnings: %v", w)
	}
	if code, _, errs := drover(t, "chassis sync m1"); code != 1 || !strings.Contains(errs, "login refused") || c.Logins() != 2 {
		t.Errorf("asked for it: exit %d after %d logins: %s", code, c.Logins(), errs)
	}
	if code, _, errs := drover(t, "power on m1c1n1"); code != 1 || c.Logins() != 2 {
		t.Errorf("a node that never was: exit %d after %d logins: %s", code, c.Logins(), errs)
	}
	writeFiles(t, map[string]string{"wrong": "correct horse\n"})
	h.Reload() // SIGHUP
	fixture.Eventually(t, "m1 is stored", func() bool { return len(h.Farm.Farm().Nodes()) == 4 })
	writeFiles(t, map[string]string{"wrong": "wrong horse\n"})
	logins := c.Logins()
	code, _, errs := drover(t, "power on chassis=m1 -y")
	if code != 1 || strings.Count(errs, "(it was tried once)") != 2 || c.Logins() != logins+1 {
		t.Errorf("power with a wrong password: exit %d after %d logins: %s", code, c.Logins()-logins, errs)
	}
	if !strings.Contains(log.String(), "chassis not read") {
		t.Errorf("the log says\n%s", log)
	}
}

// TestChassisFaults: whatever goes wrong when a chassis is asked by the server,
// the stored nodes stay as they were.
func TestChassisFaults(t *testing.T) {
	c := ilosim.New(1, 6, 1, 2)
	h, store, _ := hardwareSite(t, fmt.Sprintf(`[{name: m1, address: "%s", passwordFile: pass, pool: compute, ipTemplate: "10.28.7.{{.Cartridge}}"}]`, manager(t, c)))
	fixture.Eventually(t, "m1 is known", func() bool { return len(h.Chassis()) == 1 })
	if code, out, errs := drover(t, "chassis sync m1"); code != 0 || out != "m1: 6 nodes: 6 new\n" {
		t.Fatal(code, out, errs)
	}
	s := h.SyncOf("m1")
	h.Login.Timeouts = bmc.Timeouts{Dial: time.Second, Handshake: time.Second, Command: time.Second, Backoff: time.Millisecond}
	failed := 0
	for i, fault := range ilosim.All() {
		before := nodesOf(t, store)
		for x := 1; x <= 6; x++ { // so that each reading would change something
			c.Edit(fmt.Sprintf("c%dn1", x), func(n *ilosim.Node) { n.MACs[1] = fmt.Sprintf("94:57:a5:02:%02x:%02x", x, i) })
		}
		c.Inject(fault, ilosim.Always)
		err := s.Once(t.Context())
		c.Clear(fault)
		same := fmt.Sprint(before) == fmt.Sprint(nodesOf(t, store))
		switch st := statusOf(h, "m1"); {
		case same != (err != nil):
			t.Fatalf("%s: %v, and the stored nodes are %v", fault, err, nodesOf(t, store))
		case err == nil: // it does not concern this way to ask
		case st.Error == "" || st.Nodes != 6 || st.Good.IsZero():
			t.Errorf("%s: status %+v", fault, st)
		default:
			failed++
		}
	}
	if failed < 8 {
		t.Errorf("only %d faults were felt", failed)
	}
}

func nodesOf(t *testing.T, store *state.Store) []pools.PoolNode {
	t.Helper()
	nodes, err := store.Nodes.Nodes()
	if err != nil {
		t.Fatal(err)
	}
	return nodes
}

// TestImportNamed: a chassis of the config is imported by its name, and switched
// by it without a server.
func TestImportNamed(t *testing.T) {
	c := ilosim.New(1, 3, 1, 2)
	_, store, _ := hardwareSite(t, fmt.Sprintf(`[{name: m1, address: "%s", passwordFile: pass, pool: compute, nodes: c1-c2, nic: A, tags: [debug], ipTemplate: "10.28.7.{{.Cartridge}}"}]`, manager(t, c)))
	pins := " --known-hosts known_hosts --known-certs known_certs"
	for _, tt := range []struct {
		line     string
		code     int
		out, err string
	}{
		{"import moonshot m1 -c drover.yaml" + pins, 0, `{name: m1c1n1, macs: ["94:57:a5:01:01:00"], ip: 10.28.7.1, tags: [debug]}`, "m1: 2 nodes: 2 new"},
		{"import moonshot m1 -c drover.yaml --apply" + pins, 0, "+ m1c2n1  94:57:a5:01:02:00  10.28.7.2\nm1: 2 nodes: 2 new\n", ""},
		{"power on c2n1 --chassis m1 -c drover.yaml" + pins, 0, "c2n1     on     -\n", "c2n1: on"},
		{"power on c2n1 --chassis m9 -c drover.yaml" + pins, 2, "", "has no chassis of that name"},
		{"import moonshot m2 -c drover.yaml", 2, "", `drover.yaml has no chassis "m2"`},
		{"import moonshot m1 m1 -c drover.yaml", 2, "", "m1 is there twice"},
		{"import moonshot m1 -c drover.yaml --pool x", 2, "", "--pool: of a chassis that is named"},
		{"import moonshot m1 -c nowhere.yaml", 1, "", "no such file"},
	} {
		code, out, errs := drover(t, tt.line)
		if code != tt.code || !strings.Contains(out, tt.out) || !strings.Contains(errs, tt.err) {
			t.Errorf("drover %s: exit %d\n%s%s\nwant exit %d\n%s%s", tt.line, code, out, errs, tt.code, tt.out, tt.err)
		}
	}
	nodes := nodesOf(t, store)
	if len(nodes) != 2 || nodes[0].ChassisSlot != (pools.ChassisSlot{Chassis: "m1", Slot: "c1n1"}) {
		t.Errorf("stored are %+v", nodes)
	}
}

// TestServeChassis: the server as drover serve makes it knows the chassis of its
// config, takes them anew with it, and is ready while one is in trouble.
func TestServeChassis(t *testing.T) {
	c := ilosim.New(1, 2, 1, 1)
	t.Chdir(t.TempDir())
	config := strings.ReplaceAll(hardwareConfig, "CHASSIS", fmt.Sprintf(`[
  {name: m1, address: "%s", passwordFile: pass, pool: compute, ipTemplate: "10.28.7.{{.Cartridge}}", interval: 1h},
  {name: m2, address: "127.0.0.1:1", passwordFile: nowhere, pool: compute, ipTemplate: "10.28.8.{{.Cartridge}}", interval: 1h}]`, manager(t, c)))
	writeFiles(t, map[string]string{"drover.yaml": config, "pass": c.Password})
	s, err := server.New(server.Options{Config: "drover.yaml", State: "state", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Hardware.Switcher.Poll = 5 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Hardware.Run(ctx) }()
	defer func() { cancel(); <-done }()
	srv := httptest.NewServer(s.Web.Handler())
	defer srv.Close()
	t.Setenv("DROVER_API", srv.URL)
	t.Setenv("DROVER_TOKEN_FILE", "state/api.token")

	fixture.Eventually(t, "the nodes of m1 are there", func() bool { return len(s.Live.Farm().Nodes()) == 4 })
	if code, out, errs := drover(t, "power pxe m1c1n1"); code != 0 || !strings.Contains(out, "m1c1n1   on") || c.Power("c1n1") != "On" {
		t.Errorf("power: exit %d\n%s%s", code, out, errs)
	}
	if code, out, _ := drover(t, "audit --node m1c1n1"); code != 0 || strings.Count(out, "power pxe  m1c1n1") != 2 || strings.Count(out, "add node") != 1 {
		t.Errorf("audit: exit %d\n%s", code, out)
	}
	fixture.Eventually(t, "m2 is in trouble", func() bool {
		return strings.Contains(scrape(t), `drover_chassis_syncs_total{chassis="m2",result="error"} 1`)
	})
	warned := false
	for _, p := range s.Web.API.Ready(ctx) {
		warned = warned || p.Part == "chassis m2" && p.Warning && strings.Contains(p.Problem, "nowhere: no such file")
	}
	if !warned {
		t.Errorf("no warning for m2: %v", s.Web.API.Ready(ctx))
	}
	if fingerprints, err := os.ReadFile("state/known_hosts"); err != nil || len(fingerprints) == 0 {
		t.Errorf("no host key is pinned beside the state: %v", err)
	}
	writeFiles(t, map[string]string{"drover.yaml": strings.ReplaceAll(hardwareConfig, "CHASSIS", "[]")})
	s.Reload("the test")
	fixture.Eventually(t, "the chassis are gone with the config", func() bool { return len(s.Hardware.Chassis()) == 0 })
	if n := len(s.Live.Farm().Nodes()); n != 4 {
		t.Errorf("got %d nodes, want that they stay", n)
	}
}
