package web_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/pools"
)

// withPassword adds a node to the config file whose power has a password among its options.
func withPassword(t *testing.T, s *harness) {
	t.Helper()
	writeFile(t, "bmc.pass", "x")
	const first = "nodes: [\n"
	node := `      {name: b1, macs: ["52:54:00:00:00:b1"], ip: 10.28.0.21, power: {driver: ipmi, address: bmc-b1, passwordFile: bmc.pass, options: [-P, hunter2]}},` + "\n"
	if err := os.WriteFile("drover.yaml", []byte(strings.Replace(farmText, first, first+node, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.live.Reload(); err != nil {
		t.Fatal(err)
	}
}

// TestOptionsOfPower: only the token of an admin reads the options of power, which can have
// passwords, in whatever form nodes are sent.
func TestOptionsOfPower(t *testing.T) {
	s := listen(t, false)
	withPassword(t, s.harness)
	clients := map[string]map[string]string{
		"a viewer": bearer(s.token(t, pools.RoleViewer)), "an operator": bearer(s.token(t, pools.RoleOperator)),
		"an admin's browser": s.login(secret), "an admin": bearer(secret),
	}
	for who, header := range clients {
		may := who == "an admin"
		for _, path := range []string{"/api/v1/nodes", "/api/v1/nodes?limit=10", "/api/v1/nodes/b1", "/api/v1/plan?node=b1"} {
			for _, coding := range []string{"", "gzip"} {
				header["Accept-Encoding"] = coding
				resp, r := s.stream(path, header)
				text := readAll(t, resp, r)
				if resp.StatusCode != http.StatusOK || !strings.Contains(text, "b1") {
					t.Fatalf("%s, %s: got %d %s", who, path, resp.StatusCode, text)
				}
				if got := strings.Contains(text, "hunter2"); got != (may && !strings.Contains(path, "plan")) {
					t.Errorf("%s, %s, %q: reads the options: %t", who, path, coding, got)
				}
				if resp.Header.Get("Content-Encoding") != "" && may {
					t.Errorf("%s, %s: secrets are compressed", who, path)
				}
			}
		}
		delete(header, "Accept-Encoding")
		if who == "an operator" {
			resp := s.do(request{method: "PUT", path: "/api/v1/nodes/b1/next-boot", body: `{"nextBoot": "local"}`, header: header})
			fixture.WantText(t, who, resp.Body.String(), `"name": "b1"`)
			fixture.WantNoText(t, who, resp.Body.String(), "hunter2")
		}
		_, r := s.stream("/api/v1/nodes?watch=true", header)
		line := until(t, r, `"name":"b1"`, "")
		if got := strings.Contains(line, "hunter2"); got != may {
			t.Errorf("%s, a watch: reads the options: %t in %s", who, got, line)
		}
	}
	tag := s.do(request{path: "/api/v1/nodes/b1"}).Header().Get("ETag")
	writeFile(t, "drover.yaml", strings.Replace(fixture.ReadFile(t, "drover.yaml"), "hunter2", "hunter3", 1))
	if err := s.live.Reload(); err != nil {
		t.Fatal(err)
	}
	if got := s.do(request{path: "/api/v1/nodes/b1"}).Header().Get("ETag"); got != tag {
		t.Error("the ETag depends on the options")
	}
}

// readAll returns the body of an answer, which can be compressed.
func readAll(t *testing.T, resp *http.Response, r io.Reader) string {
	t.Helper()
	if resp.Header.Get("Content-Encoding") == "gzip" {
		zip, err := gzip.NewReader(r)
		if err != nil {
			t.Fatal(err)
		}
		r = zip
	}
	var b bytes.Buffer
	if _, err := io.Copy(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestMachineOfAnotherPool: a client that is limited to pools makes no node of a machine that
// another pool has.
func TestMachineOfAnotherPool(t *testing.T) {
	const nodes = "/api/v1/nodes"
	fresh := func(mac string) string {
		return `{"pool": "compute", "name": "n9", "macs": ["` + mac + `"], "ip": "10.28.0.19"}`
	}
	const known, silent, leased, none = "52:54:00:00:00:77", "52:54:00:00:00:66", "52:54:00:00:00:0a", "52:54:00:00:00:99"
	for _, tt := range []struct {
		name, method, path, body string
		pools                    []string
		code                     int
	}{
		{"add", "POST", nodes, fresh(known), []string{"compute"}, 403},
		{"add one that is leased", "POST", nodes, fresh(leased), []string{"compute"}, 403},
		{"add one that got no answer", "POST", nodes, fresh(silent), []string{"compute"}, 201},
		{"add one that nobody has seen", "POST", nodes, fresh(none), []string{"compute"}, 201},
		{"add, of both pools", "POST", nodes, fresh(known), []string{"compute", "catchall"}, 201},
		{"add, of all pools", "POST", nodes, fresh(known), nil, 201},
		{"batch", "POST", nodes + ":batch", `{"changes": [{"new": ` + fresh(known) + `}]}`, []string{"compute"}, 403},
		{"batch, of both pools", "POST", nodes + ":batch", `{"changes": [{"new": ` + fresh(known) + `}]}`, []string{"compute", "catchall"}, 200},
		{"patch", "PATCH", nodes + "/n3", `{"macs": ["52:54:00:00:00:03", "` + known + `"]}`, []string{"compute"}, 403},
		{"patch of what it has", "PATCH", nodes + "/n3", `{"macs": ["52:54:00:00:00:03"], "tags": ["gpu"]}`, []string{"compute"}, 200},
		{"patch, of both pools", "PATCH", nodes + "/n3", `{"macs": ["` + known + `"]}`, []string{"compute", "catchall"}, 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newHarness(t, func(s *harness) { s.Unknowns, s.Leases = someUnknowns(), someLeases() })
			s.addNodes(t)
			header := bearer(s.token(t, pools.RoleOperator, tt.pools...))
			want := map[int]int{201: 200}[tt.code]
			if want == 0 {
				want = tt.code
			}
			if resp := s.do(request{method: tt.method, path: tt.path + "?dryRun=true", body: tt.body, header: header}); resp.Code != want {
				t.Errorf("a dry run: got %d %s", resp.Code, resp.Body)
			}
			if resp := s.do(request{method: tt.method, path: tt.path, body: tt.body, header: header}); resp.Code != tt.code {
				t.Errorf("got %d %s, want %d", resp.Code, resp.Body, tt.code)
			}
		})
	}
	s := newHarness(t, func(s *harness) { s.Unknowns = someUnknowns() })
	page := s.do(request{path: "/unknown", anonymous: true, header: s.sessionOf(t, s.token(t, pools.RoleOperator, "compute"))}).Body.String()
	fixture.WantText(t, "the list", page, "do=add&amp;pick=52%3A54%3A00%3A00%3A00%3A66")
	fixture.WantNoText(t, "the list", page, "do=add&amp;pick=52%3A54%3A00%3A00%3A00%3A77")
}
