package power_test

import (
	"testing"

	"drover/cmd/drover/cli"
	"drover/cmd/drover/power"
	"drover/e2e/clitest"
)

// TestOrderUsage: what could switch more machines than intended is refused before a server or a
// chassis is asked.
func TestOrderUsage(t *testing.T) {
	s := clitest.Serve(t, nil)
	for line, want := range map[string]string{
		"power off":                      "accepts 1 arg",
		"power off m1 m2":                "accepts 1 arg",
		"power explode m1":               `unknown command "explode"`,
		"power off , -y":                 "SELECTOR wants names of nodes",
		"power off pool= -y":             "want pool=NAME",
		"power off rack=7 -y":            `unknown key "rack"`,
		"power off pool=a,pool=b -y":     "there twice",
		"power off pool=a,m1 -y":         "which must all fit",
		"power off m[1- -y":              "a [ without ]",
		"power off m1 -c drover.yaml":    "--config is for --chassis",
		"power off m1 --max-parallel -1": "--max-parallel -1",
		"power off m1 --poll 0s":         "--poll and --wait",
		"power off m1 --drain=-1s":       "--drain wants a time",
		"power on m1 --drain":            "unknown flag: --drain",
		"power off c1 --chassis m1=::1 -y --drain --password-file /dev/null": "--drain wants a time, and a server",
		"power off m1 --driver telnet":                                       "want ssh, rest, redfish, ipmi or exec",
		"power off m1 --driver redfish":                                      "no password",
		"power off m1 --driver redfish --parallel 0":                         "--parallel 0: want 1 to 64",
		"power off m1 --driver exec":                                         "--program is missing",
		"power off m1 --driver ssh":                                          "--chassis is missing",
		"power off m1 --driver exec --program x --system 1":                  "--system is for the driver redfish",
		"chassis sync":                "requires at least 1 arg",
		"chassis list --sort address": `--sort "address"`,
		"audit m1":                    "unknown command",
	} {
		t.Setenv("DROVER_ILO_PASSWORD", "")
		clitest.Check(t, s, power.Commands, clitest.Case{Line: line, Code: cli.Usage, Err: want})
	}
}

const (
	order = "POST /api/v1/power"
	job   = `{"id": "7", "action": "off", "ended": "2026-11-20T12:00:00Z", "nodes": [{"name": "m10", "step": "done", "state": "off"}, {"name": "m2", "step": "failed", "state": "unknown", "error": "no route"}]}`
	table = "MACHINE  POWER    ERROR\nm10      off      -\nm2       unknown  no route\n"
)

// TestOrder: unless all machines were typed out, the server says which they are and the operator
// answers; with any answer but yes no order is given.
func TestOrder(t *testing.T) {
	s := clitest.Serve(t, map[string]string{order: job})
	body := func(of string) string { return ` {"action":"off",` + of + `,"wait":"2m","maxParallel":32}` }
	byRule, byName := body(`"pool":"web"`), body(`"nodes":["m10","m2"]`)
	const question = "power off: m2 m10\npower off of 2 machines? [y/N] "
	clitest.Check(t, s, power.Commands,
		clitest.Case{Line: "power off pool=web", In: "n\n", Code: cli.Failed, Err: question + "\ndrover: nothing is done\n", Asked: order + "?dryRun=true" + byRule},
		clitest.Case{Line: "power off pool=web", Code: cli.Usage, Err: "there was no answer", Asked: order + "?dryRun=true" + byRule},
		clitest.Case{Line: "power off pool=web", In: "y\n", Code: cli.Partly, Out: table, Err: question + "\ndrover: m2: no route\n", Asked: order + "?dryRun=true" + byRule + "\n" + order + byRule},
		clitest.Case{Line: "power off m10,m2", Code: cli.Partly, Out: table, Err: "m2: no route", Asked: order + "?dryRun=true" + byName + "\n" + order + byName},
		clitest.Case{Line: "power off m10,m2 -y -o jsonpath={[*].state}", Code: cli.Partly, Out: "off unknown\n", Err: "m2: no route", Asked: order + byName},
		clitest.Case{Line: "power status pool=web", Code: cli.Partly, Out: table, Err: "m2: no route", Asked: order + ` {"action":"status","pool":"web","wait":"2m","maxParallel":32}`},
	)
	s = clitest.Serve(t, map[string]string{order: "403 this needs the role operator"})
	clitest.Check(t, s, power.Commands, clitest.Case{Line: "power off pool=web -y", Code: cli.Refused, Err: "this needs the role operator", Asked: order + byRule})
}

// TestFollowOrder: each step of a job that goes on is shown once, up to its end.
func TestFollowOrder(t *testing.T) {
	s := clitest.Serve(t, map[string]string{
		order:                 `{"id": "7", "nodes": [{"name": "m10", "step": "draining", "state": "on"}, {"name": "m2", "step": "waiting", "state": "on"}]}`,
		"GET /api/v1/power/7": job,
	})
	clitest.Check(t, s, power.Commands, clitest.Case{
		Line: "power off m10,m2 -y --poll 1ms --drain", Code: cli.Partly, Out: table, Err: "drover: m10: draining\ndrover: m2: no route\n",
		Asked: order + ` {"action":"off","nodes":["m10","m2"],"wait":"2m","maxParallel":32,"drain":"5m"}` + "\nGET /api/v1/power/7",
	})
}

// TestChassis: what a chassis says has no effect on a terminal, and an unknown chassis is not
// waited for.
func TestChassis(t *testing.T) {
	const list, sync = "GET /api/v1/chassis", "POST /api/v1/chassis/"
	s := clitest.Serve(t, map[string]string{
		list: `[{"name": "m1", "address": "10.1.0.1", "via": "ssh", "interval": "10m", "nodes": 45, "last": "2026-11-20T12:00:00Z", "counts": {"same": 44, "new": 1}},
			{"name": "m2", "address": "10.1.0.2", "via": "rest", "stopped": true, "error": "login \u001b[2J refused"}]`,
		sync + "m1/sync": "null", sync + "m2/sync": "403 this needs the role operator",
		"GET /api/v1/audit": `[{"time": "2026-11-20T12:00:00Z", "who": "token ci", "action": "change node", "node": "m1", "result": "done", "changes": [{"field": "pool", "before": "", "after": "web"}]}]`,
	})
	clitest.Check(t, s, power.Commands,
		clitest.Case{Line: "chassis list --sort -last", Asked: list + "?sort=-last", Out: `CHASSIS  ADDRESS   VIA   EVERY  NODES  LAST GOOD  STATE
m1       10.1.0.1  ssh   10m    45     never      1 new, 44 same
m2       10.1.0.2  rest  -      0      never      given up: login ?[2J refused
`},
		clitest.Case{Line: "chassis sync m2", Code: cli.Refused, Err: "this needs the role operator", Asked: list + "\n" + sync + "m2/sync"},
		clitest.Case{Line: "chassis sync none", Code: cli.Failed, Err: "nothing is at", Asked: list + "\n" + sync + "none/sync"},
		clitest.Case{Line: "audit --node m1 --limit 5", Asked: "GET /api/v1/audit?limit=5&node=m1",
			Out: "TIME                 WHO       ACTION       NODE  JOB  RESULT  CHANGES\n2026-11-20 12:00:00  token ci  change node  m1    -    done    pool: - -> web\n"},
	)
}
