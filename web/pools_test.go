package web_test

import (
	"strings"
	"testing"

	"drover/pools"
)

// withChassis is farmText with a chassis of the pool compute, and one of the pool storage.
const withChassis = farmText + `chassis:
  - {name: hw, address: ilo-hw, passwordFile: pass, pool: compute}
  - {name: st, address: ilo-st, passwordFile: pass, pool: storage}
`

// TestMachinesOfPools: an operator of a pool neither takes machines of other pools, whatever
// identifies them, nor switches them.
func TestMachinesOfPools(t *testing.T) {
	const nodes, batch, power = "/api/v1/nodes", "/api/v1/nodes:batch", "/api/v1/power"
	const byPort = `{"pool": "storage", "name": "byport", "match": {"circuitID": "p2"}, "ip": "10.28.0.20"}`
	node := func(name, field string) string {
		return `{"pool": "storage", "name": "` + name + `", "ip": "10.28.0.30", ` + field + `}`
	}
	const macs = `"macs": ["02:00:00:00:00:30"]`
	const moonshot = `  - {name: moonshot, catchall: true, image: debian-12, match: {mac: "94:57:a5:*"}, range: 10.28.73.10-10.28.73.20}
`
	for _, tt := range []struct {
		name, method, path, body string
		code                     int
		want                     string
	}{
		{"a client identifier", "POST", nodes, node("h1", `"match": {"clientID": "xyz"}`), 403, `node "h1" has a match and no MACs`},
		{"a client identifier, tried", "POST", nodes + "?dryRun=true", node("h1", `"match": {"clientID": "xyz"}`), 403, "is for a client without pools"},
		{"a port, closer than that of another pool", "POST", nodes, node("h1", `"match": {"circuitID": "p1", "remoteID": "sw1"}`), 403, "no MACs"},
		{"a port and MACs, which both must fit", "POST", nodes, node("h1", macs+`, "match": {"circuitID": "p1"}`), 201, ""},
		{"a kind of MAC", "POST", nodes, node("h1", `"match": {"mac": "94:57:a5:*", "circuitID": "p1"}`), 403, "no MACs"},
		{"a MAC that the match of another pool takes", "POST", nodes, node("h1", `"macs": ["94:57:a5:00:00:01"]`), 403, "moonshot"},
		{"one that its own node narrows", "POST", nodes, node("h1", `"macs": ["94:57:a5:00:00:01"], "match": {"mac": "94:57:a5:00:*"}`), 403, "moonshot"},
		{"a MAC that it does not take", "POST", nodes, node("h1", `"macs": ["94:57:a6:00:00:01"], "match": {"mac": "94:57:a6:*"}`), 201, ""},
		{"MACs away", "PATCH", nodes + "/own", `{"macs": null, "match": {"clientID": "xyz"}}`, 403, "no MACs"},
		{"MACs away from a node with a match", "PATCH", nodes + "/both", `{"macs": null}`, 403, "no MACs"},
		{"another match", "PATCH", nodes + "/byport", `{"match": {"circuitID": "p1"}}`, 403, "no MACs"},
		{"tags of a node with a match", "PATCH", nodes + "/byport", `{"tags": ["gpu"]}`, 200, ""},
		{"another name, which leases can have", "POST", batch, `{"changes": [{"old": ` + byPort + `, "new": ` + strings.Replace(byPort, `"byport"`, `"h1"`, 1) + `}]}`, 403, "no MACs"},
		{"an empty slot", "POST", nodes, node("h1", macs+`, "place": {"chassis": "hw", "slot": "c5n1"}`), 403, `node "h1" is in chassis hw c5n1: `},
		{"an empty slot by name", "POST", nodes, node("hw-c5n1", macs), 403, "a node of this chassis is for a client with its pool"},
		{"the slot of a node by name", "POST", nodes, node("hw-c1n1", macs), 403, "chassis hw c1n1"},
		{"a slot of its own chassis", "POST", nodes, node("h1", macs+`, "place": {"chassis": "st", "slot": "c5n1"}`), 201, ""},
		{"a slot of another pool's node there", "POST", nodes, node("hx-c1n1", macs+`, "place": {"chassis": "st", "slot": "c1n1"}`), 403, `it is the slot of node "guest"`},
		{"a chassis that comes later", "POST", nodes, node("h1", macs+`, "place": {"chassis": "next", "slot": "c1n1"}`), 403, "the config has no such chassis"},
		{"into a slot", "PATCH", nodes + "/own", `{"place": {"chassis": "hw", "slot": "c5n1"}}`, 403, "chassis hw c5n1"},
		{"out of its slot, to that of its name", "PATCH", nodes + "/hw-c9n1", `{"place": null}`, 403, "chassis hw c9n1"},
		{"tags of a node in a slot", "PATCH", nodes + "/hw-c9n1", `{"tags": ["gpu"]}`, 200, ""},
		{"a slot by another name", "POST", batch, `{"changes": [{"old": OWN, "new": ` + node("hw-c5n1", macs) + `}]}`, 403, "chassis hw c5n1"},
		{"switch a node that was moved to the pool", "POST", power, `{"action": "off", "nodes": ["hw-c9n1"]}`, 202, ""},
		{"switch another pool's slot", "POST", power, `{"action": "off", "nodes": ["hw-c1n1"]}`, 403, `node "blade"`},
		{"try to", "POST", power + "?dryRun=true", `{"action": "off", "nodes": ["own", "hw-c1n1"]}`, 403, "chassis hw c1n1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := &machines{}
			s := newHarness(t, func(s *harness) { s.Hardware, s.Power, s.Audit = m, m, m })
			writeFile(t, "drover.yaml", strings.Replace(withChassis, "  - {name: catchall", moonshot+"  - {name: catchall", 1))
			if err := s.live.Reload(); err != nil {
				t.Fatal(err)
			}
			const own = `{"pool": "storage", "name": "own", "macs": ["02:00:00:00:00:01"], "ip": "10.28.0.21"}`
			given := []string{
				byPort, own,
				`{"pool": "storage", "name": "both", "macs": ["02:00:00:00:00:02"], "match": {"circuitID": "p9"}, "ip": "10.28.0.22"}`,
				`{"pool": "compute", "name": "otherport", "match": {"circuitID": "p1"}, "ip": "10.28.0.23"}`,
				`{"pool": "storage", "name": "hw-c9n1", "macs": ["02:00:00:00:00:04"], "place": {"chassis": "hw", "slot": "c4n1"}, "ip": "10.28.0.24"}`,
				`{"pool": "compute", "name": "blade", "macs": ["02:00:00:00:00:05"], "place": {"chassis": "hw", "slot": "c1n1"}, "ip": "10.28.0.25"}`,
				`{"pool": "compute", "name": "guest", "macs": ["02:00:00:00:00:06"], "place": {"chassis": "st", "slot": "c1n1"}, "ip": "10.28.0.26"}`,
			}
			if tt.path != nodes {
				given = append(given, `{"pool": "storage", "name": "hw-c1n1", "macs": ["02:00:00:00:00:07"], "ip": "10.28.0.27"}`)
			}
			for _, n := range given {
				if resp := s.do(request{method: "POST", path: nodes, body: n}); resp.Code != 201 {
					t.Fatal(resp.Body)
				}
			}
			body := strings.Replace(tt.body, "OWN", own, 1)
			token := s.token(t, pools.RoleOperator, "storage")
			resp := s.do(request{method: tt.method, path: tt.path, body: body, anonymous: true, header: bearer(token)})
			if got := unescaped(resp.Body.String()); resp.Code != tt.code || !strings.Contains(got, tt.want) {
				t.Errorf("got %d %s\nwant %d with %s", resp.Code, got, tt.code, tt.want)
			}
			if asked := len(m.asked) > 0; asked != (tt.code == 202) {
				t.Errorf("asked %q", m.asked)
			}
		})
	}
}
