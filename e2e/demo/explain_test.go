package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/pools/config"
	"drover/pools/resolve"
)

// TestExplain compares the output of "drover explain" for each machine of the demo with
// the golden files.
func TestExplain(t *testing.T) {
	drover := filepath.Join(t.TempDir(), "drover")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", drover, "drover/cmd/drover").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	for _, tt := range []struct{ golden, mac, arch string }{
		{"explain-bios.golden", "52:54:00:77:00:0a", "bios"},
		// Until it is added over the API, the file has no place for it but the
		// catch-all.
		{"explain-uefi.golden", "52:54:00:77:00:b2", "uefi-x64"},
		{"explain-stray.golden", "52:54:00:77:00:0c", "bios"},
	} {
		t.Run(tt.golden, func(t *testing.T) {
			cmd := exec.Command(drover, "explain", "-c", "e2e/demo/drover.yaml", tt.mac, "--arch", tt.arch)
			cmd.Dir = "../.."
			cmd.Stderr = t.Output()
			got, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			fixture.Golden(t, "testdata/"+tt.golden, got)
		})
	}
}

// TestExplainAdded does the same for the machine that is added over the API,
// with its node applied to the file's, as the server does.
func TestExplainAdded(t *testing.T) {
	n, err := readAdded("added.json")
	if err != nil {
		t.Fatal(err)
	}
	farm, err := config.Load("drover.yaml", n)
	if err != nil {
		t.Fatal(err)
	}
	plan := farm.Resolve(resolve.Query{MAC: n.MACs[1], Firmware: pools.UEFIx64})
	if plan == nil || plan.Node != n.Name {
		t.Fatalf("got %v, want node %q", plan, n.Name)
	}
	got, err := json.MarshalIndent(struct {
		*resolve.Plan
		Why resolve.Why `json:"why"`
	}{plan, plan.Why()}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	fixture.Golden(t, "testdata/explain-uefi-added.golden", append(got, '\n'))
}

// TestRackAndFarmAgree checks that the machines of the demo have the MACs of the farm and
// of the added node.
func TestRackAndFarmAgree(t *testing.T) {
	n, err := readAdded("added.json")
	if err != nil {
		t.Fatal(err)
	}
	farm, err := config.Load("drover.yaml", n)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]struct{ cluster, node string }{
		"bios":  {"tenant-a", "a1"},
		"uefi":  {"tenant-b", "b1"},
		"stray": {"lobby", "node-52540077000c"},
	}
	for _, m := range rackful() {
		mac, err := pools.ParseMAC(m.MAC())
		if err != nil {
			t.Fatal(err)
		}
		plan := farm.Resolve(resolve.Query{MAC: mac})
		if plan == nil || plan.Cluster != want[m.Name].cluster || plan.Node != want[m.Name].node {
			t.Errorf("machine %s: got %+v, want %+v", m.Name, plan, want[m.Name])
		}
	}
}

// TestTheEditMovesTheNode checks that the demo's edit of its farm only moves its first
// machine to another tenant.
func TestTheEditMovesTheNode(t *testing.T) {
	text, err := os.ReadFile("drover.yaml")
	if err != nil {
		t.Fatal(err)
	}
	edited := strings.Replace(string(text), beforeMove, afterMove, 1)
	before, err := config.Parse("drover.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	after, err := config.Parse("drover.yaml", []byte(edited))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range rackful() {
		mac, err := pools.ParseMAC(m.MAC())
		if err != nil {
			t.Fatal(err)
		}
		was, is := before.Resolve(resolve.Query{MAC: mac}), after.Resolve(resolve.Query{MAC: mac})
		if moved := was.Cluster != is.Cluster; was.Node != is.Node || moved != (m.Name == "bios") {
			t.Errorf("%s: %s in %s, after the edit %s in %s", m.Name, was.Node, was.Cluster, is.Node, is.Cluster)
		}
	}
}
