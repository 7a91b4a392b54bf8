package node_test

import (
	"testing"

	"drover/cmd/drover/cli"
	"drover/cmd/drover/node"
	"drover/e2e/clitest"
)

var commands = node.Commands

// TestUsage: usage is checked before a server is asked. An argument or a rule without a value,
// such as a variable of a script that is not set, chooses no nodes, and never all.
func TestUsage(t *testing.T) {
	s := clitest.Serve(t, nil)
	for line, want := range map[string]string{
		"node frobnicate":                    "unknown command",
		"node add":                           "accepts 1 arg(s)",
		"node add n1":                        "--pool is missing",
		"node add n1 --pool p":               "--mac is missing",
		"node add n1 --pool p --ip 10.0.0.1": "or by --client-id, --circuit-id",
		"node add n1 --pool p --mac zz --ip 10.0.0.1":         `--mac: "zz" is not a MAC address`,
		"node add n1 --pool p --mac 52:54:00:00:00:01 --ip x": `--ip: "x" is not an IP address`,
		"node list x[":                                    "a [ without ]",
		"node list ,":                                     `"," names no node`,
		"node list --selector=":                           "has no rule",
		"node list -l ,":                                  "has no rule",
		"node list -l pool=":                              "the value is missing",
		"node list -l tag!=":                              "the value is missing",
		"node list -l rack=7":                             `unknown key "rack" (known: chassis, cluster, from`,
		"node list -l state=dead":                         `unknown state "dead"`,
		"node list -o xml":                                `unknown output "xml" (table, wide, name, json or yaml)`,
		"node list -w -o yaml":                            "--watch prints a table or json, not yaml",
		"node list --sort mac":                            `--sort "mac"`,
		"node rm":                                         "which nodes?",
		"node rm --selector= -y":                          "has no rule",
		"node rm , -y":                                    "names no node",
		"node set m1":                                     "what changes?",
		"node set --pool p":                               "which nodes?",
		"node set m1 --ip x":                              "is not an IP address",
		"node set m1 --mac x":                             `--mac: "x"`,
		"node set m[1-2] --ip 10.0.0.1":                   "--ip and --mac are for one node",
		"node set m1,m2 --mac 02:00:00:00:00:01":          "--ip and --mac are for one node",
		"node set -l pool=p --ip 10.0.0.1":                "--ip and --mac are for one node",
		"node move m1":                                    "--pool is missing",
		"node rename m1":                                  "accepts 2 arg(s)",
		"node rename m[1-2] x":                            "rename is for one node",
		"node next-boot m1":                               "accepts 2 arg(s)",
		"node next-boot m1 disk":                          "disk",
		"unknown forget zz":                               `"zz" is not a MAC address`,
		"unknown describe zz":                             `"zz" is not a MAC address`,
		"unknown adopt 02:00:00:00:00:01":                 "--pool is missing",
		"unknown adopt zz --pool p":                       `"zz" is not a MAC address`,
		"unknown adopt 02:00:00:00:00:01 --pool p --ip x": "neither an IP address nor auto",
		"unknown adopt 02:00:00:00:00:01 02:00:00:00:00:02 --pool p --ip 10.0.0.1": "an address is for one machine",
	} {
		clitest.Check(t, s, commands, clitest.Case{Line: line, Code: cli.Usage, Err: want})
	}
}

const (
	batch = "POST /api/v1/nodes:batch"
	try   = batch + "?dryRun=true"
	old2  = `{"pool":"db","name":"m2","macs":["52:54:00:00:00:02"]}`
	old10 = `{"pool":"web","name":"m10","macs":["52:54:00:00:00:10"],"ip":"10.28.0.10","tags":["fast"]}`
)

// TestChange: a change is checked by the server, shown, and then made in one step. Unless each node
// was typed out by name there is a question, and with any answer but yes nothing is changed.
func TestChange(t *testing.T) {
	s := clitest.Serve(t, map[string]string{"GET /api/v1/nodes": nodes, batch: "{}"})
	two := ` {"changes":[{"old":` + old2 + `,"new":{"pool":"db","name":"m2","macs":["52:54:00:00:00:02"],"tags":["gpu"]}},` +
		`{"old":` + old10 + `,"new":{"pool":"web","name":"m10","macs":["52:54:00:00:00:10"],"ip":"10.28.0.10","tags":["fast","gpu"]}}]}`
	const shown = "~ m2\n    tags: - -> [gpu]\n~ m10\n    tags: [fast] -> [fast, gpu]\n"
	byRule, byName := get+"\n"+try+two, get+"&name=m2%2Cm10\n"+try+two
	const set = "node set -l from=api --add-tag gpu"
	one := ` {"changes":[{"old":` + old2 + `}]}`
	clitest.Check(t, s, commands,
		clitest.Case{Line: set, In: "n\n", Code: cli.Failed, Out: shown, Err: "change 2 nodes? [y/N] \ndrover: nothing is done\n", Asked: byRule},
		clitest.Case{Line: set, Code: cli.Usage, Out: shown, Err: "there was no answer", Asked: byRule},
		clitest.Case{Line: set + " --dry-run -y", Out: shown, Asked: byRule},
		clitest.Case{Line: set, In: "y\n", Out: shown, Err: "change 2 nodes?", Asked: byRule + "\n" + batch + two},
		clitest.Case{Line: set + " -y -o name", Out: "m2\nm10\n", Err: shown, Asked: byRule + "\n" + batch + two},
		clitest.Case{Line: "node set m2 m10 --add-tag gpu", Out: shown, Asked: byName + "\n" + batch + two},
		clitest.Case{Line: "node set m10 --add-tag fast", Out: "nothing changes\n", Asked: get + "&name=m10\n" + try + ` {"changes":[{"old":` + old10 + `,"new":` + old10 + `}]}`},
		clitest.Case{Line: "node set m7 --add-tag x", Code: cli.Failed, Err: "no such node: m7", Asked: get + "&name=m7"},
		clitest.Case{Line: "node set node-5254000000aa --pool db", Code: cli.Failed, Err: "drover unknown adopt makes it one", Asked: get + "&name=node-5254000000aa"},
		clitest.Case{Line: "node rm m2", Out: "- m2 (pool db, -, 52:54:00:00:00:02)\nremoved m2\n", Asked: get + "&name=m2\n" + try + one + "\n" + batch + one},
		clitest.Case{Line: "node rm m[2-2]", In: "n\n", Code: cli.Failed, Out: "- m2 (pool db, -, 52:54:00:00:00:02)\n", Err: "remove 1 node? [y/N]", Asked: get + "&name=m2\n" + try + one},
		clitest.Case{Line: "node rm node-5254000000aa -y", Code: cli.Failed, Err: "there is nothing to remove", Asked: get + "&name=node-5254000000aa"},
		clitest.Case{Line: "node rm m2 --dry-run -o json", Out: "[]\n", Err: "- m2 ", Asked: get + "&name=m2\n" + try + one},
	)
}

// TestRefusal: what the server refuses at the check is not sent again, and nothing is shown.
func TestRefusal(t *testing.T) {
	s := clitest.Serve(t, map[string]string{"GET /api/v1/nodes": nodes, batch: "403 the token is for pool web", "POST /api/v1/nodes": "409 52:54:00:00:00:02 is that of m2"})
	one := ` {"changes":[{"old":` + old2 + `}]}`
	clitest.Check(t, s, commands,
		clitest.Case{Line: "node rm m2 -y", Code: cli.Refused, Err: "the token is for pool web", Asked: get + "&name=m2\n" + try + one},
		clitest.Case{Line: "node add n9 --pool web --mac 525400000002 --tag x", Code: cli.Failed, Err: "is that of m2",
			Asked: `POST /api/v1/nodes {"pool":"web","name":"n9","macs":["52:54:00:00:00:02"],"tags":["x"]}`},
		clitest.Case{Line: "node next-boot m2 rescue", Code: cli.Failed, Err: "nothing is at", Asked: `PUT /api/v1/nodes/m2/next-boot {"nextBoot":"rescue"}`},
		clitest.Case{Line: "node show ../boots", Code: cli.Failed, Err: "nothing is at", Asked: "GET /api/v1/nodes/..%2Fboots"},
	)
}

// TestAdopt: machines become nodes with free addresses, all or none, and are switched only then.
func TestAdopt(t *testing.T) {
	answers := map[string]string{
		"GET /api/v1/unknown":   `[{"mac": "02:00:00:00:00:01", "relay": "10.29.0.1", "circuit": "eth1"}, {"mac": "02:00:00:00:00:02"}]`,
		"GET /api/v1/addresses": `["10.28.0.5", "10.28.0.6"]`, batch: "{}", "POST /api/v1/power": `{"id": "7"}`,
	}
	s := clitest.Serve(t, answers)
	const unknown, adopt = "GET /api/v1/unknown", "unknown adopt 02:00:00:00:00:01 --pool web "
	body := ` {"changes":[{"new":{"pool":"web","name":"eth1-3","macs":["02:00:00:00:00:01"],"ip":"10.28.0.9"}}]}`
	const shown = "+ eth1-3\n    ip: - -> 10.28.0.9\n    macs: - -> [\"02:00:00:00:00:01\"]\n    name: - -> eth1-3\n    pool: - -> web\n"
	const named = adopt + "--name-template {{.Circuit}}-{{.Index}} --first 3 --ip 10.28.0.9 --cycle"
	clitest.Check(t, s, commands,
		clitest.Case{Line: "unknown adopt 02:00:00:00:00:09 02:00:00:00:00:01 --pool web", Code: cli.Failed, Err: "no unknown machine has the MAC 02:00:00:00:00:09", Asked: unknown},
		clitest.Case{Line: adopt + "--name-template {{.Rack}}", Code: cli.Usage, Err: "--name-template: ", Asked: unknown},
		clitest.Case{Line: named + " --dry-run", Out: shown, Asked: unknown + "\n" + try + body},
		clitest.Case{Line: named, Out: shown + "power cycle of 1 machines is under way: job 7\n",
			Asked: unknown + "\n" + try + body + "\n" + batch + body + "\n" + `POST /api/v1/power {"action":"cycle","nodes":["eth1-3"]}`},
	)
	answers[batch] = "409 10.28.0.9 is leased"
	clitest.Check(t, s, commands, clitest.Case{Line: named, Code: cli.Failed, Err: "is leased", Asked: unknown + "\n" + try + body})
}
