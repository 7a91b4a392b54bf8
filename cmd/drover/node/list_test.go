package node_test

import (
	"strings"
	"testing"

	"drover/cmd/drover/cli"
	"drover/e2e/clitest"
)

// nodes are one of the config, two of the API, one of a chassis, and one that no node declares.
const nodes = `[
  {"name": "m1", "pool": "web", "macs": ["52:54:00:00:00:01"], "ip": "10.28.0.1", "source": {"file": "drover.yaml", "line": 6}, "status": {"state": "ready", "address": "10.28.0.1", "poolTags": ["gpu"]}},
  {"name": "m2", "pool": "db", "macs": ["52:54:00:00:00:02"], "source": {"path": "API"}, "status": {"state": "stuck", "power": "on", "detail": "at \u001b[2J kernel"}},
  {"name": "m10", "pool": "web", "macs": ["52:54:00:00:00:10"], "ip": "10.28.0.10", "tags": ["fast"], "source": {"path": "API"}, "status": {"state": "new", "address": "10.28.0.10"}},
  {"name": "m3", "pool": "db", "place": {"chassis": "ch1", "slot": "c3n1"}, "source": {"path": "API"}},
  {"name": "node-5254000000aa", "pool": "web", "catchall": true, "source": {}, "status": {"state": "ready"}}]`

const get = "GET /api/v1/nodes?catchall=true"

// TestSelect: rules that the server has no filter for are applied here, and a name that no node
// has is an error, not nothing.
func TestSelect(t *testing.T) {
	s := clitest.Serve(t, map[string]string{"GET /api/v1/nodes": nodes})
	const auto = "node-5254000000aa\n"
	clitest.Check(t, s, commands,
		clitest.Case{Line: "node list -o name", Out: "m1\nm2\nm3\nm10\n" + auto, Asked: get},
		clitest.Case{Line: "node list --sort -name -o name", Out: auto + "m10\nm3\nm2\nm1\n", Asked: get},
		clitest.Case{Line: "node list --sort pool -o name", Out: "m2\nm3\nm1\nm10\n" + auto, Asked: get},
		clitest.Case{Line: "node list m[1-2],m3 -o name", Out: "m1\nm2\nm3\n", Asked: get + "&name=m1%2Cm2%2Cm3"},
		clitest.Case{Line: "node list -l tag=gpu -o name", Out: "m1\n", Asked: get + "&tag=gpu"},
		clitest.Case{Line: "node list -l tag!=gpu -o name", Out: "m2\nm3\nm10\n" + auto, Asked: get},
		clitest.Case{Line: "node list -l pool=web -l state!=ready -o name", Out: "m10\n", Asked: get + "&pool=web"},
		clitest.Case{Line: "node list -l from=api -o name", Out: "m2\nm10\n", Asked: get},
		clitest.Case{Line: "node list -l from!=config,from!=api,pool=db -o name", Out: "m3\n", Asked: get + "&pool=db"},
		clitest.Case{Line: "node list -l cluster= -o name", Out: "m1\nm2\nm3\nm10\n" + auto, Asked: get},
		clitest.Case{Line: "node list m1 -l state=stuck -o json", Out: "[]\n", Asked: get + "&name=m1"},
		clitest.Case{Line: "node list m1 m7 m[8-9]", Code: cli.Failed, Err: "no such node: m7 m8 m9", Asked: get + "&name=m1%2Cm7%2Cm8%2Cm9"},
		clitest.Case{Line: "node list -l pool=db", Asked: get + "&pool=db", Out: `NAME  POOL  IP  STATE  FOR  TAGS  FROM              NOTE
m2    db    -   stuck  -    -     API               at ?[2J kernel
m3    db    -   -      -    -     chassis ch1 c3n1  -
`},
	)
}

// TestSlips: a value that is nowhere is an error with the nearest one, and a value that nothing has
// now is an empty list.
func TestSlips(t *testing.T) {
	clitest.Serve(t, map[string]string{
		"GET /api/v1/nodes": nodes, "GET /api/v1/nodes?catchall=true&pool=wbe": "[]", "GET /api/v1/nodes?catchall=true&pool=spare": "[]",
		"GET /api/v1/nodes?catchall=true&tag=fst": "[]", "GET /api/v1/nodes?catchall=true&cluster=prod": "[]", "GET /api/v1/nodes?catchall=true&image=debian": "[]",
		"GET /api/v1/pools": `[{"name": "web"}, {"name": "db"}, {"name": "spare"}]`, "GET /api/v1/tags": `[{"name": "gpu"}]`,
		"GET /api/v1/clusters": `[{"name": "prod1"}]`, "GET /api/v1/images": `[{"name": "debian-12"}]`,
	})
	for line, want := range map[string]string{
		"node list -l pool=wbe":                `nothing has the pool "wbe" (did you mean "web"?)`,
		"node set -l tag=fst --add-tag gpu -y": `nothing has the tag "fst" (did you mean "fast"?)`,
		"node list -l cluster=prod -o json":    `nothing has the cluster "prod" (did you mean "prod1"?)`,
		"node list -l image=debian":            `nothing has the image "debian" (did you mean "debian-12"?)`,
		"node list -l power=onn":               `nothing has the power "onn" (did you mean "on"?)`,
		"node list -l from=apy":                `unknown from "apy" (one of config, api, chassis, catch-all)`,
		"node list -l image.outdated=yes":      `unknown image.outdated "yes" (one of true, false)`,
		"node list -l stat=ready":              `unknown key "stat" (did you mean "state"?)`,
	} {
		if got := clitest.Run(t, commands(), "", line); got.Code != cli.Usage || !strings.Contains(got.Err, want) {
			t.Errorf("%s: got exit %d, %q, want %q", line, got.Code, got.Err, want)
		}
	}
	if got := clitest.Run(t, commands(), "", "node list -l pool=spare -o name"); got.Code != 0 || got.Out != "" {
		t.Errorf("an empty pool: got exit %d, %q, %q", got.Code, got.Out, got.Err)
	}
}

// TestFollow: what fits is shown with each change. A node that fits no more is removed, and so is
// one that a list lacks which comes again; the others of that list are not.
func TestFollow(t *testing.T) {
	const event = "GET /api/v1/nodes?catchall=true&pool=web&watch=true"
	s := clitest.Serve(t, map[string]string{event: `event: list
data: [{"name":"a","pool":"web"},{"name":"b","pool":"web"},{"name":"c","pool":"web"},{"name":"d","pool":"db"}]

event: changed
data: {"name":"d","pool":"db"}

event: added
data: {"name":"e","pool":"web"}

event: removed
data: {"name":"e","pool":"web"}

event: list
data: [{"name":"a","pool":"db"},{"name":"b","pool":"web"}]

event: end
data: {"status":403,"error":"the token has ended"}

`})
	got := clitest.Run(t, commands(), "", "node list -w -o json -l pool=web")
	want := ""
	for _, l := range [][3]string{
		{"is", "web", "a"}, {"is", "web", "b"}, {"is", "web", "c"}, {"added", "web", "e"}, {"removed", "web", "e"}, {"removed", "db", "a"}, {"is", "web", "b"}, {"removed", "web", "c"},
	} {
		want += `{"change":"` + l[0] + `","node":{"pool":"` + l[1] + `","name":"` + l[2] + `","source":{"path":""}}}` + "\n"
	}
	if got.Code != cli.Refused || got.Out != want || got.Err != "drover: the token has ended\n" {
		t.Errorf("got exit %d\n%s%s\nwant exit %d\n%s", got.Code, got.Out, got.Err, cli.Refused, want)
	}
	if asked := s.Asked(); len(asked) != 1 {
		t.Errorf("asked for %q", asked)
	}
}
