package externalhost_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drover/e2e/controlplane"
	"drover/e2e/fixture"
	"drover/e2e/manual"
)

// machine is the host outside the cluster.
type machine struct {
	*manual.Host
	t *testing.T
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	h, err := manual.NewHost("legacy1", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return &machine{h, t}
}

// run returns the output of a command on the host.
func (m *machine) run(line string) (string, error) {
	out, err := m.Command(path + line).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", line, err, out)
	}
	return string(out), err
}

func (m *machine) must(line string) string {
	m.t.Helper()
	out, err := m.run(line)
	if err != nil {
		m.t.Fatal(err)
	}
	return out
}

// reach waits until the pod answers the host at that address.
func (m *machine) reach(what, url string) {
	m.t.Helper()
	fixture.Retry(m.t, "the host reaches "+what, func() error {
		out, err := m.run("curl -fsS --max-time 3 http://" + url)
		if err == nil && out != "hello from the pod" {
			err = fmt.Errorf("%q", out)
		}
		return err
	})
}

// startDNS runs CoreDNS in the pod.
func startDNS(t *testing.T, p *controlplane.Cluster, dns, dir string) {
	t.Helper()
	file := filepath.Join(dir, "Corefile")
	text := ".:53 {\n\terrors\n\tkubernetes cluster.local {\n\t\tkubeconfig " + p.Admin + "\n\t}\n\tcache 2\n}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	daemon(t, "pod", filepath.Join(dns, "coredns"), "-conf", file)
}

// testCheck has the host examine itself: it is whole.
func testCheck(t *testing.T, m *machine) {
	t.Helper()
	fixture.Retry(t, "the check of the host finds no fault", func() error {
		out, err := m.run("drover host check")
		for _, part := range []string{"host legacy1 of cluster tenant", "host and nodes n1 reach each other in the pod network", "ok       pod ", "ok       service", "ok       dns", "ok       resolver", "ok       credentials", "ok       proxy        port 18080 leads to headless.default"} {
			if err == nil && !strings.Contains(out, part) {
				err = fmt.Errorf("no %q in\n%s", part, out)
			}
		}
		return err
	})
}

// testBroken breaks the host in ways that need its real programs, one after another. TestBroken
// of cmd/drover/host/check has more of them.
func testBroken(t *testing.T, m *machine) {
	t.Helper()
	for _, b := range []struct{ breaks, mends, finding, text string }{
		{"nft 'add table ip broken; add chain ip broken out { type filter hook output priority 0; }; add rule ip broken out udp dport 8472 drop'", "nft delete table ip broken", "vxlan", "UDP port 8472 is blocked"},
		{"mv /etc/resolv.conf /etc/resolv.conf.was", "mv /etc/resolv.conf.was /etc/resolv.conf", "resolver", "this host does not"},
		{"cd /etc/drover-host/tenant && cp token token.good && echo x > token", "mv /etc/drover-host/tenant/token.good /etc/drover-host/tenant/token", "credentials", "the cluster does not accept them"},
	} {
		m.must(b.breaks)
		out, err := m.run("drover host check")
		if err == nil || !strings.Contains(out, "fault    "+b.finding) || !strings.Contains(out, b.text) {
			t.Errorf("after %s the check has no fault %q with %q: %v", b.breaks, b.finding, b.text, err)
		}
		m.must(b.mends)
	}
}
