package web_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"drover/pools"
)

// scopeText is a farm of two teams. What the second one has is named after it, or has one of the
// marks of foreign.
const scopeText = `server: {interfaces: [eth1], address: 10.28.0.2}
subnets: [{cidr: 10.28.0.0/16, router: 10.28.0.1, dns: [10.28.0.53]}]
clusters: [{name: red-cluster, kubeconfig: a.kubeconfig}, {name: blue-cluster, kubeconfig: l.kubeconfig}]
chassis: [{name: blue-chassis, address: 10.28.0.90, passwordFile: p, pool: blue}]
tags:
  red-tag: {}
  shared: {kernelArgs: quiet}
  blue-tag: {kernelArgs: token=topsecret, files: {/etc/key: {content: topsecret}}, rootPasswordHash: $6$topsecret$, env: {KEY: topsecret}}
pools:
  - {name: red, cluster: red-cluster, image: debian-12, tags: [red-tag], delegates: [shared], delegateNames: red*, nodes: [{name: red1, macs: ["02:00:00:00:0a:01"], ip: 10.28.10.1}]}
  - {name: blue, cluster: blue-cluster, image: blue-image, tags: [blue-tag], nodes: [
      {name: blue1, macs: ["02:00:00:00:0b:01"], ip: 10.28.66.1, power: {driver: ipmi, address: 10.28.66.201, passwordFile: p, options: [-k, topsecret]}}]}
  - {name: blue-lobby, catchall: true, cluster: blue-cluster, image: blue-image, range: 10.28.66.100-10.28.66.200}
`

// foreign are the marks of what belongs to the second team.
var foreign = []string{"blue", "topsecret", "02:00:00:00:0b", "02-00-00-00-0b", "10.28.66."}

// refused is the end of an error for a thing that the client has named: whose it is.
var refused = regexp.MustCompile(`not for those of (&#34;|\\?")[a-z-]+`)

// scoped returns a server of that farm, and the token of an operator of the first team.
func scoped(t *testing.T) (s *harness, m *machines, token string) {
	m = &machines{
		jobs: []pools.PowerJob{{ID: "j1", Action: "on", Actor: "token blue-ops from 10.28.66.9:1", Nodes: []pools.PowerNode{{Name: "blue1", State: "on"}}}},
		audit: []pools.AuditEntry{
			{Time: epoch, Actor: "token blue-ops from 10.28.66.9:1", Action: "change node", Node: "blue1"},
			{Time: epoch, Actor: "token blue-ops from 10.28.66.9:1", Action: "make token blue-ops", Result: "done"},
		},
		chassis: []pools.ChassisStatus{{Name: "blue-chassis", Pool: "blue", Address: "10.28.66.90"}},
	}
	blue := func(last byte) pools.MAC { return pools.MAC{2, 0, 0, 0, 0x0b, last} }
	s = newHarness(t, func(s *harness) {
		b := boot(1, "blue1", "blue-cluster", 5, time.Minute, "no topsecret")
		b.Pool, b.MAC, b.Image = "blue", blue(1), "blue-image"
		unknown := boot(2, "blue-x", "blue-cluster", 3, time.Minute, "")
		unknown.Pool, unknown.MAC, unknown.Image, unknown.Unknown = "blue-lobby", blue(2), "blue-image", true
		s.Boots = bootList{b, unknown}
		s.Hardware, s.Power, s.Audit = m, m, m
		s.Leases = &leases{{Address: netip.MustParseAddr("10.28.66.100"), MAC: blue(2), Node: "blue-x", Pool: "blue-lobby", Expires: epoch.Add(time.Hour)}}
		s.Unknowns = &unknowns{
			{MAC: blue(2), First: epoch, Last: epoch, Pool: "blue-lobby", Address: netip.MustParseAddr("10.28.66.100")},
			{MAC: pools.MAC{2, 0, 0, 0, 0x0c, 3}, First: epoch, Last: epoch, Class: "of no pool"},
		}
	})
	if err := os.WriteFile("drover.yaml", []byte(scopeText), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.live.Reload(); err != nil {
		t.Fatal(err)
	}
	if resp := s.do(request{method: "POST", path: "/api/v1/nodes", body: `{"pool": "blue", "name": "blue2", "macs": ["02:00:00:00:0b:04"], "ip": "10.28.66.4"}`}); resp.Code != 201 {
		t.Fatal(resp.Body)
	}
	if resp := s.do(request{method: "POST", path: "/api/v1/nodes", body: `{"pool": "red", "name": "red2", "macs": ["02:00:00:00:0a:04"], "ip": "10.28.10.4"}`}); resp.Code != 201 {
		t.Fatal(resp.Body)
	}
	return s, m, s.token(t, pools.RoleOperator, "red")
}

// TestScopeOfReading: no answer to a client that is limited to a pool has anything of another, on
// any path that reads, nor has any page.
func TestScopeOfReading(t *testing.T) {
	s, _, token := scoped(t)
	paths := []string{"/", "/nodes", "/nodes?catchall=true", "/unknown", "/pools", "/tags", "/clusters", "/chassis", "/leases", "/power", "/audit", "/nodes/blue1", "/nodes/blue2"}
	names := strings.NewReplacer("{cluster}", "blue-cluster", "{name}", "blue1", "{node}", "blue1", "{id}", "j1", "{address}", "10.28.66.100", "{mac}", "02:00:00:00:0b:02")
	for _, r := range s.Routes() {
		if r.Method != http.MethodGet {
			continue
		}
		path := names.Replace(r.Path)
		if strings.HasSuffix(path, "/plan") {
			path += "?node=blue1"
		}
		paths = append(paths, path)
	}
	paths = append(paths, "/api/v1/plan?mac=02:00:00:00:0b:01", "/api/v1/nodes?catchall=true", "/api/v1/boots?sort=id", "/api/v1/nodes/red1", "/nodes/red1")
	for _, do := range []string{"edit", "next", "power", "move", "tag", "remove", "boots"} {
		paths = append(paths, "/change?do="+do+"&pick=blue1", "/change?do="+do+"&pick=blue2", "/change?all=yes&do="+do)
	}
	paths = append(paths, "/change?do=adopt&pick=02:00:00:00:0b:02", "/change?do=release&pick=10.28.66.100", "/change?do=forget&pick=02:00:00:00:0b:02", "/change?do=read&pick=blue-chassis", "/change?do=add", "/change?do=list")
	session := s.sessionOf(t, token)
	table := tabwriter.NewWriter(os.Stderr, 0, 0, 2, ' ', 0)
	if !testing.Verbose() {
		table = tabwriter.NewWriter(io.Discard, 0, 0, 2, ' ', 0)
	}
	for _, path := range paths {
		header := bearer(token)
		if !strings.HasPrefix(path, "/api/") {
			header = session
		}
		resp := s.do(request{path: path, anonymous: true, header: header})
		body := resp.Body.String()
		_, query, _ := strings.Cut(path, "?")
		v, _ := url.ParseQuery(query)
		for _, asked := range []string{v.Get("pick"), url.QueryEscape(v.Get("pick"))} { // it may say what was asked for
			body = strings.ReplaceAll(body, cmp.Or(asked, "\x00"), "")
		}
		body = refused.ReplaceAllString(body, "")
		for _, mark := range foreign {
			if i := strings.Index(strings.ToLower(body), mark); i >= 0 && resp.Code < 400 || strings.Contains(body, "topsecret") {
				t.Errorf("%s: the answer %d has %q: ...%.200s", path, resp.Code, mark, body[max(0, i-80):])
			}
		}
		_, _ = fmt.Fprintf(table, "GET %s\t%d\t%d bytes\n", path, resp.Code, len(body))
	}
	_ = table.Flush()
	if resp := s.do(request{path: "/api/v1/nodes", anonymous: true, header: bearer(token)}); !strings.Contains(resp.Body.String(), "red1") || !strings.Contains(resp.Body.String(), "red2") {
		t.Errorf("its own nodes are not there: %s", resp.Body)
	}
}

// TestScopeOfWatches: nor has a watch.
func TestScopeOfWatches(t *testing.T) {
	s, _, token := scoped(t)
	server := httptest.NewServer(s.http)
	defer server.Close()
	for _, r := range s.Routes() {
		if !r.Watch {
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+r.Path+"?watch=true", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var first strings.Builder
		for lines := bufio.NewScanner(resp.Body); lines.Scan() && (lines.Text() != "" || !strings.Contains(first.String(), "data:")); {
			first.WriteString(lines.Text() + "\n")
		}
		if resp.StatusCode != 200 || !strings.Contains(first.String(), "data:") {
			t.Errorf("%s: got %d %q", r.Path, resp.StatusCode, first.String())
		}
		for _, mark := range foreign {
			if strings.Contains(first.String(), mark) {
				t.Errorf("%s: the watch begins with %q: %.300s", r.Path, mark, first.String())
			}
		}
		cancel()
		_ = resp.Body.Close()
	}
}

// foreignFields are values of the fields of a node that would take something of another pool, or
// of the infrastructure.
var foreignFields = map[string][]string{
	"pool":        {`"blue"`, `"blue-lobby"`},
	"name":        {`"blue1"`, `"blue2"`, `"cp1"`},
	"macs":        {`["02:00:00:00:0b:01"]`, `["02:00:00:00:0b:02"]`, `["02:00:00:00:0b:04"]`, `["00:00:5e:00:01:07"]`},
	"match":       {`{"circuitID": "port7"}`, `{"uuid": "4c4c4544-0000-1000-8000-000000000001"}`},
	"ip":          {`"10.28.66.1"`, `"10.28.66.100"`, `"10.28.66.150"`, `"10.28.0.1"`, `"10.28.0.2"`, `"10.28.0.53"`, `"10.28.0.90"`, `"10.28.66.201"`},
	"ip6":         {`"fd00::1"`},
	"tags":        {`["blue-tag"]`, `["shared", "blue-tag"]`},
	"dhcpOptions": {`{"router": "x\u0000"}`},
	"lease":       {`"-1h"`},
	"ignore":      {`"blue"`},
	"place":       {`{"chassis": "blue-chassis", "slot": "c1n1"}`, `{"chassis": "none", "slot": "c1n1"}`},
	"power":       {`{"driver": "ipmi", "address": "10.28.66.201", "passwordFile": "p"}`},
}

// TestScopeOfChanges: with each field of a node, in each way to change nodes, and on each path that
// changes something, such a client takes nothing of another pool.
func TestScopeOfChanges(t *testing.T) {
	s, m, token := scoped(t)
	others := func() string {
		var all []string
		for _, path := range []string{"/api/v1/nodes?pool=blue", "/api/v1/leases", "/api/v1/unknown", "/api/v1/boots", "/api/v1/tokens"} {
			resp := s.do(request{path: path})
			all = append(all, resp.Body.String())
		}
		return strings.Join(all, "\n")
	}
	red := func(field, value string) string {
		n := map[string]json.RawMessage{"pool": json.RawMessage(`"red"`), "name": json.RawMessage(`"red9"`), "macs": json.RawMessage(`["02:00:00:00:0a:09"]`), "ip": json.RawMessage(`"10.28.10.9"`)}
		n[field] = json.RawMessage(value)
		if field == "match" {
			delete(n, "macs")
		}
		b, _ := json.Marshal(n)
		return string(b)
	}
	before := others()
	fields := []string{"pool"}
	for f := range reflect.TypeFor[pools.Node]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if fields = append(fields, name); len(foreignFields[name]) == 0 {
			t.Errorf("no value of another pool is known for the field %s", name)
		}
	}
	var tried int
	try := func(q request) {
		t.Helper()
		q.anonymous, q.header = true, bearer(token)
		tried++
		resp := s.do(q)
		if testing.Verbose() {
			t.Logf("%s %s %s: %d", q.method, q.path, q.body, resp.Code)
		}
		if resp.Code < 400 {
			t.Errorf("%s %s %s: got %d", q.method, q.path, q.body, resp.Code)
		}
		if strings.Contains(resp.Body.String(), "topsecret") {
			t.Errorf("%s %s: the error has a secret: %s", q.method, q.path, resp.Body)
		}
		if now := others(); now != before || len(m.asked) > 0 {
			t.Fatalf("%s %s %s: something of another pool has changed, or %q was done", q.method, q.path, q.body, m.asked)
		}
	}
	for _, field := range fields {
		for _, value := range foreignFields[field] {
			try(request{method: "POST", path: "/api/v1/nodes", body: red(field, value)})
			try(request{method: "POST", path: "/api/v1/nodes:batch", body: `{"changes": [{"new": ` + red(field, value) + `}]}`})
			if field != "match" { // of a node with MACs it is one condition more
				try(request{method: "PATCH", path: "/api/v1/nodes/red2", body: fmt.Sprintf(`{%q: %s}`, field, value)})
			}
		}
	}
	names := strings.NewReplacer("{cluster}", "blue-cluster", "{name}", "blue2", "{node}", "blue1", "{id}", "j1", "{address}", "10.28.66.100", "{mac}", "02:00:00:00:0b:02")
	bodies := map[string][]string{
		"/api/v1/nodes:batch":            {`{"changes": [{"old": {"pool": "blue", "name": "blue2", "macs": ["02:00:00:00:0b:04"], "ip": "10.28.66.4"}}]}`},
		"/api/v1/power":                  {`{"action": "off", "nodes": ["blue1"]}`, `{"action": "off", "pool": "blue"}`, `{"action": "off", "nodes": ["red1", "blue1"]}`},
		"/api/v1/nodes/{name}/next-boot": {`{"nextBoot": "local"}`},
		"/api/v1/nodes/{name}":           {`{"tags": []}`},
	}
	try(request{method: "PUT", path: "/api/v1/nodes/red2/next-boot", body: `{"nextBoot": "image=blue-image"}`})
	for _, r := range s.Routes() {
		if r.Method == http.MethodGet || r.Path == "/api/v1/nodes" {
			continue
		}
		all := bodies[r.Path]
		if r.Body == nil {
			all = []string{""}
		}
		for _, body := range all {
			try(request{method: r.Method, path: names.Replace(r.Path), body: body})
		}
		if len(all) == 0 {
			try(request{method: r.Method, path: names.Replace(r.Path), body: "{}"})
		}
	}
	t.Logf("%d requests", tried)
}
