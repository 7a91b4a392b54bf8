package e2e_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"drover/e2e/controlplane"
	"drover/e2e/fixture"
	"drover/e2e/lab"
	"drover/e2e/lab/pcap"
	"drover/e2e/lab/site"
	"drover/pools/boots"
)

// TestNetbootToReady boots a bare machine until it is Ready in its cluster and runs a
// pod. Then it searches everything that server and node sent, logged or ran for the
// secrets of all join tokens.
func TestNetbootToReady(t *testing.T) {
	b := build(t)
	host := watchCmdlines()
	var tokens *tokenWatch
	var watching *lab.Process
	s := open(t, b, site.Config{
		Name: "drover-e2e-ready", Farm: "testdata/ready.yaml",
		Admin: func(r *lab.Rack, p *controlplane.Cluster) (err error) {
			tokens = watchTokens(t, filepath.Join(b.Kubernetes, "kubectl"), p)
			watching, err = r.Start("token-watch", tokens.proc)
			return err
		},
	})
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Minute)
	defer cancel()
	fixture.Until(ctx, t, "token watch is up", func() (bool, error) { return len(tokens.secrets(t)) > 0, nil })
	own := tokens.secrets(t) // of the control plane itself

	capture := record(ctx, t, s, "wire")
	const mac = "52:54:00:77:01:01"
	plan, err := s.Expect(mac)
	if err != nil {
		t.Fatal(err)
	}
	// Its clock is wrong, as with a dead battery: all certificates are not yet valid.
	g := powerOn(t, s, lab.Machine{Name: "n1", Clock: "2001-02-03T04:05:06", NICs: card(mac)})
	fixture.Until(ctx, t, "n1 has joined", func() (bool, error) { // its cluster has no Node before
		return reached(bootOf(ctx, t, s, mac), boots.StepJoined), nil
	})
	fixture.Until(ctx, t, "n1 is Ready and runs a pod", func() (bool, error) {
		_, err := s.Look(ctx, plan)
		return err == nil, err
	})
	t.Logf("%.1f s after power-on", time.Since(g.Started).Seconds())
	logBoot(ctx, t, s, mac)

	node := testimony(t, s.Rack)
	file := capture()
	if err := s.Drover.Stop(); err != nil {
		t.Errorf("drover did not end well: %v", err)
	}
	if !watching.Running() {
		t.Error("the token watch ended early")
	}
	secrets := tokens.secrets(t)
	if len(secrets) <= len(own) {
		t.Fatal("no join token was ever seen: there is nothing to search for")
	}
	t.Logf("%d join token(s) were minted", len(secrets)-len(own))

	places := map[string]string{
		"command lines of the server": host.close(),
		"what the node tells":         node,
		"drover's log":                read(t, s.Drover.Log()),
		"the node's console":          read(t, g.Console),
	}
	state, err := filepath.Glob(filepath.Join(s.Drover.State, "*"))
	if err != nil || len(state) == 0 {
		t.Fatalf("drover keeps no state: %v", err)
	}
	for _, name := range state {
		places[name] = read(t, name)
	}
	for place, text := range places {
		if has(secrets, text) {
			t.Errorf("a token secret is in %s", place)
		}
	}
	// The searches are valid only if the places have the expected content.
	for place, want := range map[string]string{
		"command lines of the server": "drover serve -c",
		"what the node tells":         "kubeadm join",
		"drover's log":                mac,
		"the node's console":          "drover",
	} {
		if !strings.Contains(places[place], want) {
			t.Errorf("%q is not in %s", want, place)
		}
	}
	if !strings.Contains(places["the node's console"], "it showed 2001-02-03 04:") {
		t.Error("drover-init does not say that it set the clock")
	}
	// kubeadm names the flag, with three dots, when it fails because the node is slow.
	if regexp.MustCompile(`--ignore-preflight-errors[= ][^.]`).MatchString(node) {
		t.Error("a preflight error was ignored")
	}

	w := searchWire(t, file, secrets...)
	if len(w.found) > 0 {
		t.Error("a token secret was sent over the wire")
	}
	if w.served < 100<<20 {
		t.Errorf("only %d bytes of HTTP were captured: less than an image", w.served)
	}
	// The search must find a text that was sent, such as the script.
	if found := searchWire(t, file, "drover: node n1").found; len(found) == 0 {
		t.Error("the search does not find what was served")
	}
	if n, err := g.DiskUsed(); n != 0 || err != nil {
		t.Errorf("%d bytes of the disk were written, %v", n, err)
	}
}

// TestSearchFinds proves that the search of [TestNetbootToReady] can fail.
func TestSearchFinds(t *testing.T) {
	const secret = "0123456789abcdef"
	if has([]string{secret}, "the token is abcdef."+secret[:15]) {
		t.Error("found a secret that is not there")
	}
	if !has([]string{"fedcba9876543210", secret}, "the token is abcdef."+secret) {
		t.Error("did not find a secret that is there")
	}
	host := watchCmdlines()
	time.Sleep(200 * time.Millisecond)
	if all := host.close(); !strings.Contains(all, filepath.Base(os.Args[0])) {
		t.Errorf("did not find this process in %d bytes of command lines", len(all))
	}
}

// has reports whether one of the secrets is in a text, plain or in base64.
func has(secrets []string, text string) bool {
	n := pcap.NewNeedles(secrets...)
	_, err := n.Write([]byte(text))
	return err != nil || len(n.Found()) > 0
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
