package status_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/cmd/drover/status"
	"drover/e2e/clitest"
	"drover/e2e/fixture"
	"drover/pools"
)

func commands() []*cobra.Command { return []*cobra.Command{status.NewCommand()} }

func serve(t *testing.T, o *pools.Overview) *clitest.Server {
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return clitest.Serve(t, map[string]string{"GET /api/v1/status": string(text)})
}

// TestStatus: a server that is not ready is exit code 1 in each format, after all output. Warnings
// leave it ready.
func TestStatus(t *testing.T) {
	o := &pools.Overview{
		Ready: true, Nodes: map[string]int{"ready": 3, "booting": 2}, Unknown: 4, Pin: "sha256:6b7e",
		Pools:    []pools.PoolStates{{Name: "web", Nodes: 5, States: map[string]int{"ready": 3, "booting": 2}}},
		Stuck:    []pools.StuckCause{{Cause: "at kernel \x1b[2J", Nodes: []string{"m1", "m2"}}},
		Images:   map[string]int{"debian-12": 5},
		Problems: []pools.PartProblem{{Part: "disk", Problem: "nearly full", Warning: true}},
	}
	const text = `server            %s
pin               sha256:6b7e
nodes             5: 2 booting, 3 ready
pool web          5: 2 booting, 3 ready
stuck             2 at kernel ?[2J: m1 m2
images            5 debian-12
leases            -
unknown machines  4
warning           disk: nearly full
`
	const asked = "GET /api/v1/status"
	clitest.Check(t, serve(t, o), commands, clitest.Case{Line: "status", Out: fmt.Sprintf(text, "ready"), Asked: asked})
	o.Ready = false
	o.Problems = append(o.Problems, pools.PartProblem{Part: "image debian-12", Problem: "is not there"})
	s := serve(t, o)
	clitest.Check(t, s, commands,
		clitest.Case{Line: "status", Code: cli.Failed, Out: fmt.Sprintf(text, "not ready") + "problem           image debian-12: is not there\n", Err: "drover: the server is not ready\n", Asked: asked},
		clitest.Case{Line: "status -o jsonpath={.ready}", Code: cli.Failed, Out: "false\n", Err: "not ready", Asked: asked},
		clitest.Case{Line: "status web", Code: cli.Usage, Err: "unknown command"},
		clitest.Case{Line: "status -o table", Code: cli.Usage, Err: `unknown output "table" (text, json or yaml)`},
	)
}

// TestOneScreen: of a large farm there is a part, and the number of the rest.
func TestOneScreen(t *testing.T) {
	o := &pools.Overview{Ready: true}
	for i := range 40 {
		o.Pools = append(o.Pools, pools.PoolStates{Name: fmt.Sprintf("p%d", i)})
		cause := pools.StuckCause{Cause: fmt.Sprintf("cause %d", i)}
		for j := range 40 {
			cause.Nodes = append(cause.Nodes, fmt.Sprintf("m%dc%d", i, j))
		}
		o.Stuck = append(o.Stuck, cause)
	}
	serve(t, o)
	got := clitest.Run(t, commands(), "", "status")
	if lines := strings.Count(got.Out, "\n"); got.Code != 0 || lines > 27 {
		t.Errorf("exit %d, %d lines\n%s%s", got.Code, lines, got.Out, got.Err)
	}
	fixture.WantText(t, "the status", got.Out, "and 25 more pools", "and 35 more causes", "40 cause 4: m4c0 m4c1 m4c2 m4c3 m4c4 ...\n")
}
