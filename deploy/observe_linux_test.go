package deploy_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"drover/e2e/buildcache"
	"drover/e2e/fixture"
	"drover/e2e/manual"
)

// checkers returns the folder of promtool and prometheus.
func checkers(t *testing.T) string {
	t.Helper()
	fixture.Root(t)
	if err := buildcache.Able(t.Context()); err != nil {
		fixture.Missing(t, err)
	}
	root, err := buildcache.Checkers(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, "usr/bin")
}

// TestAlerts: promtool takes alerts.yaml, and its tests hold. Each alert has a case in which
// it fires, and one in which it does not.
func TestAlerts(t *testing.T) {
	promtool := filepath.Join(checkers(t), "promtool")
	for _, args := range [][]string{{"check", "rules", "--lint=all", "--lint-fatal", "alerts.yaml"}, {"test", "rules", "alerts_test.yaml"}} {
		if out, err := exec.CommandContext(t.Context(), promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %q: %v\n%s", args, err, out)
		}
	}
	var rules struct {
		Groups []struct{ Rules []struct{ Alert string } }
	}
	var cases struct {
		Tests []struct {
			Rules []struct {
				Alert string `json:"alertname"`
				Want  []any  `json:"exp_alerts"`
			} `json:"alert_rule_test"`
		}
	}
	decode(t, "alerts.yaml", &rules)
	decode(t, "alerts_test.yaml", &cases)
	seen := map[string]int{}
	for _, c := range cases.Tests {
		for _, r := range c.Rules {
			seen[fmt.Sprint(r.Alert, len(r.Want) > 0)]++
		}
	}
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			if seen[r.Alert+"true"] == 0 || seen[r.Alert+"false"] == 0 {
				t.Errorf("%s: want a case in which it fires, and one in which it does not", r.Alert)
			}
		}
	}
}

func decode(t *testing.T, file string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(fixture.ReadFile(t, file)), into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// farm is the config of the server that is watched. Its first pool boots an image that is
// there; nobody answers for its cluster.
const farm = `server: {interfaces: [eth1], address: 10.28.0.2, arpProbe: false, https: ":8444", nodeTLS: {cert: cert.pem, key: key.pem},
  netconsole: ":6666", traces: "http://127.0.0.1:4318/cgi-bin/traces"}
subnets: [{cidr: 10.28.0.0/16, router: 10.28.0.1}]
clusters: [{name: tenant-a, kubeconfig: tenant-a.kubeconfig}]
chassis: [{name: c1, pool: compute, address: 127.0.0.9, user: admin, passwordFile: password}]
pools:
  - {name: compute, cluster: tenant-a, image: tiny, nodes: [{name: n1, macs: ["52:54:00:77:01:01"], ip: 10.28.36.1}]}
  - {name: rest, catchall: true, image: tiny, range: 10.28.72.10-10.28.72.250, lease: 5m}
`

// scrape is the config of Prometheus that docs/metrics.md describes, with a short interval.
const scrape = `global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [/etc/drover/alerts.yaml]
`

// host is a host with a server and Prometheus.
type host struct {
	*manual.Host
	t *testing.T
}

func (h host) run(line string) string {
	h.t.Helper()
	out, err := h.Command(line).CombinedOutput()
	if err != nil {
		h.t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return string(out)
}

// start starts a program that lasts as long as the host. Its output is in the failed
// test's log.
func (h host) start(line string) {
	h.t.Helper()
	var log fixture.Log
	cmd := h.Command("exec " + line)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &log, &log, time.Second // the end of the host ends it
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if h.t.Failed() {
			h.t.Logf("%s:\n%s", line, log.String())
		}
	})
}

func (h host) write(to, text string) {
	h.t.Helper()
	cmd := h.Command("mkdir -p $(dirname " + to + ") && cat >" + to)
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		h.t.Fatalf("%v: %s", err, out)
	}
}

// TestObserved runs a server, lets clients boot from it and lets a real Prometheus scrape
// it. promtool finds nothing wrong with the metrics, docs/metrics.md describes all of them,
// alerts and dashboard use none that are not there, and each query of the dashboard has data.
func TestObserved(t *testing.T) {
	bin := checkers(t)
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", dir+"/", "drover/cmd/...")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	mounts := t.TempDir()
	h, err := manual.NewHost("", mounts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	h.Dir = dir
	observed := host{h, t}
	observed.serve()
	metrics := observed.run(`sed 's/^/Authorization: Bearer /' /var/lib/drover/api.token | curl -sf -H @- http://127.0.0.1:8443/metrics`)
	observed.clients()
	observed.run("mkdir -p /etc/prometheus && ./drover token create prometheus --role metrics --write /etc/prometheus/drover.token")
	observed.run("test -x " + bin + "/prometheus")
	observed.start(bin + "/prometheus --config.file=/etc/drover/prometheus.yaml --storage.tsdb.path=/var/lib/prometheus --web.listen-address=127.0.0.1:9090 --log.level=warn")

	names := checkMetrics(t, bin, metrics)
	for _, file := range []string{"alerts.yaml", "grafana/drover.json"} {
		for _, name := range regexp.MustCompile(`drover_[a-z0-9_]+`).FindAllString(fixture.ReadFile(t, file), -1) {
			name = regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
			if !slices.Contains(names, name) {
				t.Errorf("%s: docs/metrics.md has no %s", file, name)
			}
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	for title, queries := range panels(t) {
		for _, query := range queries {
			fixture.Until(ctx, t, fmt.Sprintf("panel %q has data: %s", title, query), func() (bool, error) {
				out, err := observed.Command(bin + "/promtool query instant http://127.0.0.1:9090 '" + query + "'").CombinedOutput()
				if err != nil {
					err = fmt.Errorf("%w: %s", err, out)
				}
				return err == nil && strings.Contains(string(out), "=>"), err
			})
		}
	}
}

// serve starts the server, with an image, and with credentials that have an end.
func (h host) serve() {
	claims := base64.RawURLEncoding.EncodeToString([]byte(`{"exp":4000000000}`))
	for to, text := range map[string]string{
		"/etc/drover/drover.yaml":     farm,
		"/etc/drover/password":        "secret",
		"/etc/drover/alerts.yaml":     fixture.ReadFile(h.t, "alerts.yaml"),
		"/etc/drover/prometheus.yaml": scrape + scrapeConfig(h.t),
		"/etc/drover/tenant-a.kubeconfig": `{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}],
contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {token: e30.` + claims + `.c2ln}}]}`,
		"/var/www/cgi-bin/traces":                                        "#!/bin/sh\nprintf 'Content-Type: application/json\\r\\n\\r\\n{}'\n", // the collector of traces
		"/var/lib/drover/loaders/undionly.kpxe":                          strings.Repeat("loader ", 1000),
		h.Dir + "/tiny/usr/lib/systemd/systemd":                          "#!/bin/sh",
		h.Dir + "/tiny/boot/vmlinuz-6.1.0-1-amd64":                       "kernel",
		h.Dir + "/tiny/usr/lib/modules/6.1.0-1-amd64/modules.dep":        "kernel/squashfs.ko:\nkernel/overlay.ko:\nkernel/loop.ko:\n",
		h.Dir + "/tiny/usr/lib/modules/6.1.0-1-amd64/kernel/squashfs.ko": "module",
		h.Dir + "/tiny/usr/lib/modules/6.1.0-1-amd64/kernel/overlay.ko":  "module",
		h.Dir + "/tiny/usr/lib/modules/6.1.0-1-amd64/kernel/loop.ko":     "module",
	} {
		h.write(to, text)
	}
	h.run("ip link set lo up && ip link add eth1 type veth peer name nic0 && ip addr add 10.28.0.2/16 dev eth1 && ip link set eth1 up && ip link set nic0 address 52:54:00:77:01:01 up")
	h.run("cd /etc/drover && CGO_ENABLED=0 go run $(go env GOROOT)/src/crypto/tls/generate_cert.go --host 10.28.0.2")
	h.run("./drover image build --name tiny --init ./drover-init dir:tiny")
	h.run("chmod 755 /var/www/cgi-bin/traces")
	h.start("busybox httpd -f -p 127.0.0.1:4318 -h /var/www")
	h.start("./drover serve")
	fixture.Retry(h.t, "the server answers", func() error { return h.Command("curl -sf http://127.0.0.1:8443/healthz").Run() })
}

// clients are machines that boot, as far as this goes without one: a declared one, twice, and
// one of the catch-all pool. A host that is none of them sends a line as kernels do.
func (h host) clients() {
	const firmware = "udhcpc -f -q -n -t 20 -i nic0 -s /bin/true -V PXEClient:Arch:00000:UNDI:002001 -x 0x5d:0000"
	h.run(firmware + " && curl -s http://10.28.0.2/ ; echo get undionly.kpxe | tftp 10.28.0.2 69")
	const address, bootScript = "10.28.36.1/32 dev nic0", "http://10.28.0.2/boot/52-54-00-77-01-01"
	h.run("ip addr add " + address + " && script=$(curl -sf --interface 10.28.36.1 " + bootScript + ")" +
		" && curl -sf --interface 10.28.36.1 -o kernel $(echo \"$script\" | grep -o 'http://[^ ]*/kernel' | head -n 1) && ip addr del " + address)
	// With its next script the machine has begun another boot, and the trace of this one is sent.
	h.run(firmware + " && ip addr add " + address + " && curl -sf --interface 10.28.36.1 " + bootScript + " && ip addr del " + address)
	h.run(`bash -c "echo '<4>a line' >/dev/udp/10.28.0.2/6666"`)
	h.run("ip link set nic0 down && ip link set nic0 address 52:54:00:77:02:02 up && " + firmware)
}

// scrapeConfig returns the example of docs/metrics.md.
func scrapeConfig(t *testing.T) string {
	t.Helper()
	text, err := manual.Block("..", "docs/metrics.md", "yaml")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// checkMetrics checks the metrics of a scrape, and returns the names of drover's in
// docs/metrics.md.
func checkMetrics(t *testing.T, bin, metrics string) (documented []string) {
	t.Helper()
	check := exec.CommandContext(t.Context(), filepath.Join(bin, "promtool"), "check", "metrics")
	check.Stdin = strings.NewReader(metrics)
	if out, err := check.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `(drover_[a-z0-9_]+)` \\|").FindAllStringSubmatch(fixture.ReadFile(t, "../docs/metrics.md"), -1) {
		documented = append(documented, row[1])
	}
	for _, line := range regexp.MustCompile(`(?m)^# HELP (drover_[a-z0-9_]+) `).FindAllStringSubmatch(metrics, -1) {
		if !slices.Contains(documented, line[1]) {
			t.Errorf("docs/metrics.md does not have %s", line[1])
		}
	}
	return documented
}

// panels returns the queries of the dashboard by panel, with its variables replaced as
// Grafana does.
func panels(t *testing.T) map[string][]string {
	t.Helper()
	var board struct {
		Panels []struct {
			Title, Type string
			Targets     []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(fixture.ReadFile(t, "grafana/drover.json")), &board); err != nil {
		t.Fatal(err)
	}
	replace := strings.NewReplacer("$__rate_interval", "1m", "$job", ".+", "$instance", ".+")
	queries := map[string][]string{}
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			queries[p.Title] = append(queries[p.Title], replace.Replace(target.Expr))
		}
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %q has no query", p.Title)
		}
	}
	if len(queries) < 20 {
		t.Errorf("the dashboard has %d panels", len(queries))
	}
	return queries
}
