package main

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"drover/e2e/clitest"
	"drover/e2e/ilosim"
	"drover/pools"
	"drover/pools/config"
	"drover/pools/resolve"
)

// drover runs a command line and returns what came of it.
func drover(t *testing.T, line string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	code = run(t.Context(), strings.Fields(line), &out, &errs)
	return code, out.String(), errs.String()
}

// storedNodes is what the server has of nodes, in the order of their names.
func storedNodes(t *testing.T) string {
	t.Helper()
	code, out, errs := drover(t, "node list")
	if code != 0 {
		t.Fatal(errs)
	}
	lines := strings.Split(out, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// TestImportApply is the life of a chassis, and a running server.
func TestImportApply(t *testing.T) {
	apiSite(t)
	c := ilosim.New(1, 4, 1, 2)
	flags := clitest.Chassis(t, c)
	imports := "import moonshot " + flags + " --pool compute --ip-template 10.28.7.{{.Cartridge}} --apply"
	step := func(what string, code int, out, errs string) {
		t.Helper()
		gotCode, gotOut, gotErrs := drover(t, imports)
		if gotCode != code || gotOut != out || !strings.Contains(gotErrs, errs) || errs == "" && gotErrs != "" {
			t.Errorf("%s: exit %d\n%s%s\nwant exit %d\n%s%s", what, gotCode, gotOut, gotErrs, code, out, errs)
		}
	}
	step("first seen", 0, `+ m1c1n1  94:57:a5:01:01:00,94:57:a5:01:01:01  10.28.7.1
+ m1c2n1  94:57:a5:01:02:00,94:57:a5:01:02:01  10.28.7.2
+ m1c3n1  94:57:a5:01:03:00,94:57:a5:01:03:01  10.28.7.3
+ m1c4n1  94:57:a5:01:04:00,94:57:a5:01:04:01  10.28.7.4
m1: 4 nodes: 4 new
`, "pinned SHA256:")
	step("again", 0, `= m1c1n1  94:57:a5:01:01:00,94:57:a5:01:01:01  10.28.7.1
= m1c2n1  94:57:a5:01:02:00,94:57:a5:01:02:01  10.28.7.2
= m1c3n1  94:57:a5:01:03:00,94:57:a5:01:03:01  10.28.7.3
= m1c4n1  94:57:a5:01:04:00,94:57:a5:01:04:01  10.28.7.4
m1: 4 nodes: 4 same
`, "")
	c.Swap("c3n1", "c4n1")
	c.Edit("c1n1", func(n *ilosim.Node) { n.MACs = []string{"N/A", "N/A"} })
	c.Put(ilosim.Node{Cartridge: 2, Number: 1, Empty: true})
	step("two exchanged, one without MACs, one taken out", 3, `? m1c1n1  no network card has a MAC: what is stored stays
- m1c2n1  its slot is empty
~ m1c3n1  macs [94:57:a5:01:03:00 94:57:a5:01:03:01] -> [94:57:a5:01:04:00 94:57:a5:01:04:01]
~ m1c4n1  macs [94:57:a5:01:04:00 94:57:a5:01:04:01] -> [94:57:a5:01:03:00 94:57:a5:01:03:01]
m1: 4 nodes: 2 changed, 1 missing, 1 incomplete
`, "have no MAC yet")
	if _, out, _ := drover(t, "node list -o wide"); !regexp.MustCompile(`(?m)^m1c3n1 .* 94:57:a5:01:04:00,`).MatchString(out) || !strings.Contains(out, "m1c2n1 ") {
		t.Errorf("got nodes\n%s", out)
	}
	c.Edit("c1n1", func(n *ilosim.Node) { n.MACs = []string{"52:54:00:00:00:01"} }) // m1's, in drover.yaml
	step("a MAC of a node in the file", 3, `! m1c1n1  MAC 52:54:00:00:00:01 is already that of node "m1" in drover.yaml:6
- m1c2n1  its slot is empty
= m1c3n1  94:57:a5:01:04:00,94:57:a5:01:04:01  10.28.7.3
= m1c4n1  94:57:a5:01:03:00,94:57:a5:01:03:01  10.28.7.4
m1: 4 nodes: 2 same, 1 missing, 1 conflict
`, "nodes in conflict, left as they were: 1")
	imports += " --prune"
	step("what is gone is marked", 3, `! m1c1n1  MAC 52:54:00:00:00:01 is already that of node "m1" in drover.yaml:6
- m1c2n1  its slot is empty: it is to be ignored from now on
= m1c3n1  94:57:a5:01:04:00,94:57:a5:01:04:01  10.28.7.3
= m1c4n1  94:57:a5:01:03:00,94:57:a5:01:03:01  10.28.7.4
m1: 4 nodes: 2 same, 1 missing, 1 conflict
`, "in conflict")
	if _, out, _ := drover(t, "node show m1c2n1 -o json"); !strings.Contains(out, `"ignore": true`) {
		t.Errorf("it is not marked:\n%s", out)
	}
	for _, slot := range []string{"c1n1", "c3n1"} {
		c.Remove(slot)
	}
	before := storedNodes(t)
	step("most of it is gone", 1, "", "m1 had 4 nodes, 3 of them are not there")
	if got := storedNodes(t); got != before {
		t.Errorf("the stored nodes have changed:\n%s\nwant:\n%s", got, before)
	}
}

// TestImportedNodesBoot: what a chassis holds is imported and switched on from the
// network; the MAC that then asks is a node of the farm, by its own name.
func TestImportedNodesBoot(t *testing.T) {
	store, _ := apiSite(t)
	c := ilosim.New(1, 3, 1, 2)
	c.PowerDelay = 20 * time.Millisecond
	c.Inject(ilosim.BootOnceLost, ilosim.Always)
	flags := clitest.Chassis(t, c)
	booted := map[string]string{}
	c.OnAction = func(slot string, a ilosim.Action) {
		if !a.On || !a.PXE {
			return
		}
		live, err := config.NewLive(config.Source{File: "drover.yaml"}, store.Nodes)
		if err != nil {
			t.Error(err)
			return
		}
		mac, err := pools.ParseMAC(fmt.Sprintf("94:57:a5:01:0%s:01", slot[1:2])) // its second card
		if err != nil {
			t.Error(err)
			return
		}
		if plan := live.Farm().Resolve(resolve.Query{MAC: mac}); plan != nil {
			booted[slot] = fmt.Sprint(plan.Node, " ", plan.Address, " ", plan.Cluster)
		}
	}
	for _, line := range []string{
		"import moonshot " + flags + " --pool compute --ip-template 10.28.7.{{.Cartridge}} --apply",
		"power pxe all -y " + flags + " --poll 5ms --wait 60s",
	} {
		if code, out, errs := drover(t, line); code != 0 {
			t.Fatalf("drover %s: exit %d\n%s%s", line, code, out, errs)
		}
	}
	want := map[string]string{"c1n1": "m1c1n1 10.28.7.1 tenant-a", "c2n1": "m1c2n1 10.28.7.2 tenant-a", "c3n1": "m1c3n1 10.28.7.3 tenant-a"}
	if !maps.Equal(booted, want) {
		t.Errorf("got %v, want %v", booted, want)
	}
}

// TestImportFaults: whatever goes wrong, the exit code says what, and the stored
// nodes stay as they were.
func TestImportFaults(t *testing.T) {
	apiSite(t)
	c := ilosim.New(1, 6, 1, 2)
	flags := clitest.Chassis(t, c)
	imports := "import moonshot " + flags + " --pool compute --ip-template 10.28.7.{{.Cartridge}} --apply"
	if code, out, errs := drover(t, imports); code != 0 {
		t.Fatal(code, out, errs)
	}
	before := storedNodes(t)
	for i := 1; i <= 6; i++ { // so that each import would change something
		c.Edit(fmt.Sprintf("c%dn1", i), func(n *ilosim.Node) { n.MACs[1] = "N/A" })
	}
	for _, tt := range []struct {
		fault ilosim.Fault
		flags string // for the faults that only a timeout ends
		code  int
	}{
		{ilosim.Silent, " --timeout 1s", 4}, {ilosim.SessionLimit, "", 4}, {ilosim.StallLogin, " --timeout 1s", 4},
		{ilosim.StallMidTable, " --timeout 1s", 4}, {ilosim.CutMidTable, "", 4},
		{ilosim.Locked, "", 5}, {ilosim.NoRights, "", 5}, {ilosim.Garbage, "", 1},
	} {
		c.Inject(tt.fault, ilosim.Always)
		code, out, errs := drover(t, imports+tt.flags)
		c.Clear(tt.fault)
		if code != tt.code || out != "" || !strings.HasPrefix(errs, "drover: m1: ") {
			t.Errorf("%s: exit %d\n%s%s, want exit %d", tt.fault, code, out, errs, tt.code)
		}
		if got := storedNodes(t); got != before {
			t.Fatalf("%s: the stored nodes have changed:\n%s", tt.fault, got)
		}
	}
	if err := os.WriteFile("pass", []byte("wrong horse"), 0o600); err != nil {
		t.Fatal(err)
	}
	logins := c.Logins()
	code, _, errs := drover(t, imports)
	if code != 5 || c.Logins() != logins+1 || strings.Contains(errs, "horse") {
		t.Errorf("wrong password: exit %d after %d logins: %s, want exit 3 after one", code, c.Logins()-logins, errs)
	}
	if got := storedNodes(t); got != before {
		t.Errorf("the stored nodes have changed:\n%s", got)
	}
}

// TestImportIsAllOrNothing checks that the changes of a chassis are one call, which is
// refused as a whole: on a full disk, and if a node has changed meanwhile.
func TestImportIsAllOrNothing(t *testing.T) {
	store, srv := apiSite(t)
	c := ilosim.New(1, 4, 1, 1)
	flags := clitest.Chassis(t, c)
	imports := "import moonshot " + flags + " --pool compute --ip-template 10.28.7.{{.Cartridge}} --apply"
	if code, out, errs := drover(t, imports); code != 0 {
		t.Fatal(code, out, errs)
	}
	before := storedNodes(t)
	c.Swap("c1n1", "c2n1")
	c.Edit("c3n1", func(n *ilosim.Node) { n.MACs[0] = "94:57:a5:01:33:00" })
	c.Put(ilosim.Node{Cartridge: 9, Number: 1, MACs: []string{"94:57:a5:01:99:00"}})

	target, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	calls := 0
	through := func(meddle func(w http.ResponseWriter) (answered bool)) (code int, errs string) {
		meddler := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet {
				if calls++; meddle(w) {
					return
				}
			}
			proxy.ServeHTTP(w, r)
		}))
		defer meddler.Close()
		code, _, errs = drover(t, imports+" --api "+meddler.URL)
		return code, errs
	}
	code, errs := through(func(w http.ResponseWriter) bool {
		http.Error(w, `{"error":"the disk is full"}`, http.StatusInsufficientStorage)
		return true
	})
	if code != 1 || !strings.Contains(errs, "the disk is full") || calls != 1 {
		t.Errorf("a full disk: exit %d after %d calls: %s", code, calls, errs)
	}
	if got := storedNodes(t); got != before {
		t.Fatalf("a full disk: the stored nodes have changed:\n%s\nwant:\n%s", got, before)
	}
	code, errs = through(func(http.ResponseWriter) bool {
		if code, _, errs := drover(t, "node rm m1c2n1 -y --api "+srv.URL); code != 0 {
			t.Error(errs)
		}
		return false
	})
	if code != 1 || !strings.Contains(errs, `a node was changed meanwhile: "m1c2n1" is gone`) {
		t.Errorf("a node that was removed in between: exit %d: %s", code, errs)
	}
	if nodes, err := store.Nodes.Nodes(); err != nil || len(nodes) != 3 || nodes[0].MACs[0].String() != "94:57:a5:01:01:00" {
		t.Errorf("stored are %v, %v", nodes, err)
	}
	calls = 0
	if code, errs := through(func(http.ResponseWriter) bool { return false }); code != 0 || calls != 1 {
		t.Errorf("at last: exit %d after %d calls: %s", code, calls, errs)
	}
	if nodes, err := store.Nodes.Nodes(); err != nil || len(nodes) != 5 || nodes[0].MACs[0].String() != "94:57:a5:01:02:00" {
		t.Errorf("stored are %v, %v", nodes, err)
	}
}
