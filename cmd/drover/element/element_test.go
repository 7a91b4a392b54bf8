package element_test

import (
	"testing"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/cmd/drover/element"
	"drover/e2e/clitest"
)

func commands() []*cobra.Command {
	cluster := cli.Group(&cobra.Command{Use: "cluster"}, element.NewClusterShowCommand(), element.NewClusterListCommand())
	return []*cobra.Command{element.NewPoolCommand(), element.NewTagCommand(), cluster}
}

// serve has a pool with all properties and one with few, and two that a pattern would fit.
func serve(t *testing.T) *clitest.Server {
	const web = `{"name": "web", "cluster": "a", "image": "debian-12", "tags": ["gpu", "fast"], "nodes": 2, "catchall": true, "range": "10.28.7.1-10.28.7.9"}`
	const db = `{"name": "db", "image": "debian\u001b-13", "nodes": 0, "ignore": true}`
	return clitest.Serve(t, map[string]string{
		"GET /api/v1/pools": "[" + web + "," + db + "]", "GET /api/v1/pools?name=web": "[" + web + "]", "GET /api/v1/pools?name=db": "[" + db + "]",
		"GET /api/v1/pools?name=no": "[]", "GET /api/v1/pools?name=web%2Cno": "[" + web + "]",
		"GET /api/v1/nodes?pool=web&sort=name": `[{"name": "m1"}, {"name": "m\u001b[2J2"}]`, "GET /api/v1/nodes?pool=db&sort=name": "[]",
		"GET /api/v1/tags?name=gpu": `[{"name": "gpu", "nodes": 1, "pools": ["web"]}]`, "GET /api/v1/nodes?sort=name&tag=gpu": `[{"name": "m1"}]`,
		"GET /api/v1/clusters":        `[{"name": "a", "endpoint": "https://10.28.0.7:6443", "hosted": true, "pools": ["web", "db"], "nodes": 2}]`,
		"GET /api/v1/clusters?name=a": "403 this needs the role viewer",
	})
}

func TestUsage(t *testing.T) {
	s := serve(t)
	for line, want := range map[string]string{
		"pool show": "accepts 1 arg", "pool show a b": "accepts 1 arg", "pool list web": "unknown command", "pool rm web": "unknown command",
		"tag list --sort size": `--sort "size": want one of name, nodes`, "cluster show a -o wide": `unknown output "wide"`,
	} {
		clitest.Check(t, s, commands, clitest.Case{Line: line, Code: cli.Usage, Err: want})
	}
}

// TestShow: a property without a value is left out, and a name that the server takes for two is
// none.
func TestShow(t *testing.T) {
	s := serve(t)
	clitest.Check(t, s, commands,
		clitest.Case{Line: "pool show web", Out: `cluster    a
image      debian-12
tags       gpu fast
range      10.28.7.1-10.28.7.9
catch-all  yes
nodes      2
           m1
           m?[2J2
`, Asked: "GET /api/v1/pools?name=web\nGET /api/v1/nodes?pool=web&sort=name"},
		clitest.Case{Line: "pool show db", Out: "image   debian?-13\nignore  yes\nnodes   0\n", Asked: "GET /api/v1/pools?name=db\nGET /api/v1/nodes?pool=db&sort=name"},
		clitest.Case{Line: "pool show db -o jsonpath={.nodes}", Out: "[]\n", Asked: "GET /api/v1/pools?name=db\nGET /api/v1/nodes?pool=db&sort=name"},
		clitest.Case{Line: "pool show no", Code: cli.Failed, Err: `no such pool: "no" (drover pool list)`, Asked: "GET /api/v1/pools?name=no"},
		clitest.Case{Line: "pool show web,no", Code: cli.Failed, Err: `no such pool: "web,no"`, Asked: "GET /api/v1/pools?name=web%2Cno"},
		clitest.Case{Line: "tag show gpu", Out: "pools  web\nnodes  1\n       m1\n", Asked: "GET /api/v1/tags?name=gpu\nGET /api/v1/nodes?sort=name&tag=gpu"},
		clitest.Case{Line: "cluster show a", Code: cli.Refused, Err: "this needs the role viewer", Asked: "GET /api/v1/clusters?name=a"},
	)
}

func TestList(t *testing.T) {
	s := serve(t)
	clitest.Check(t, s, commands,
		clitest.Case{Line: "pool list", Out: "NAME  CLUSTER  IMAGE       NODES  TAGS      RANGE\n" +
			"web   a        debian-12   2      gpu,fast  10.28.7.1-10.28.7.9\ndb    -        debian?-13  0      -         -\n", Asked: "GET /api/v1/pools?sort=name"},
		clitest.Case{Line: "cluster list --sort -nodes", Out: "NAME  NODES  POOLS   ENDPOINT\na     2      web,db  https://10.28.0.7:6443\n", Asked: "GET /api/v1/clusters?sort=-nodes"},
	)
}
