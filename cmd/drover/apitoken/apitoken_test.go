package apitoken_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"drover/cmd/drover/apitoken"
	"drover/cmd/drover/cli"
	"drover/e2e/clitest"
	"drover/e2e/fixture"
)

var secret = strings.Repeat("0a", 32)

const (
	create = "POST /api/v1/tokens"
	rotate = "POST /api/v1/tokens/ci/rotate"
)

func serve(t *testing.T) *clitest.Server {
	made := `{"name": "ci", "role": "viewer", "created": "2026-11-20T12:00:00Z", "by": "me", "token": "` + secret + `"}`
	return clitest.Serve(t, map[string]string{
		create: made, rotate: made, "DELETE /api/v1/tokens/ci": "null",
		"GET /api/v1/tokens": `[{"name": "ci", "role": "operator", "pools": ["web", "db"], "created": "2026-11-20T12:00:00Z", "by": "me", "expires": "2026-11-21T12:00:00Z"}]`,
	})
}

func commands() []*cobra.Command {
	c := &cli.Client{}
	token := &cobra.Command{Use: "token"}
	c.Flags(token)
	return []*cobra.Command{cli.Group(token, apitoken.Commands(c)...)}
}

// TestUsage: no token is made by a command line with a mistake, such as the variable of a script
// that is not set: it would be one for all pools, or one without an end.
func TestUsage(t *testing.T) {
	s := serve(t)
	for line, want := range map[string]string{
		"create":                                "accepts 1 arg",
		"create ci":                             `required flag(s) "role"`,
		"create ci --role operator --pool=":     "--pool: the name of the pool is empty",
		"create ci --role operator --pool=web,": "--pool: the name of the pool is empty",
		"create ci --role viewer --ttl 0s":      "--ttl 0s: want more than nothing",
		"create ci --role viewer --ttl -1h":     "--ttl -1h0m0s: want more than nothing",
		"create ci --role viewer --ttl=":        "invalid argument",
		"create ci --role viewer --write=":      "--write: the name of the file is empty",
		"rotate ci --write=":                    "--write: the name of the file is empty",
		"rotate":                                "accepts 1 arg",
		"revoke":                                "requires at least 1 arg",
		"list --sort secret":                    `--sort "secret"`,
	} {
		clitest.Check(t, s, commands, clitest.Case{Line: "token " + line, Code: cli.Usage, Err: want})
	}
}

func TestCommands(t *testing.T) {
	s := serve(t)
	clitest.Check(t, s, commands,
		clitest.Case{Line: "token create ci --role operator --pool web --pool db --ttl 12h", Out: secret + "\n",
			Asked: create + ` {"name":"ci","role":"operator","pools":["web","db"],"ttl":"12h"}`},
		clitest.Case{Line: "token create ci --role viewer", Out: secret + "\n", Asked: create + ` {"name":"ci","role":"viewer"}`},
		clitest.Case{Line: "token rotate ci", Out: secret + "\n", Asked: rotate},
		clitest.Case{Line: "token revoke ci no", Code: cli.Partly, Out: "revoked ci\n", Err: "nothing is at", Asked: "DELETE /api/v1/tokens/ci\nDELETE /api/v1/tokens/no"},
		clitest.Case{Line: "token list --sort -expires", Asked: "GET /api/v1/tokens?sort=-expires", Out: "NAME  ROLE      POOLS   CREATED              BY  EXPIRES\n" +
			"ci    operator  web,db  2026-11-20 12:00:00  me  2026-11-21 12:00:00\n"},
	)
}

// TestWrite: a secret in a file is for its owner alone and is not printed, and a token is made
// only if its file can be written.
func TestWrite(t *testing.T) {
	s := serve(t)
	dir := fixture.Tree(t, map[string]string{"config.yaml": "pools: []\n", "empty": "", "old.token": strings.Repeat("ff", 32) + "\n", "link.token": "->old.token"})
	t.Chdir(dir)
	for _, file := range []string{"new.token", "empty", "link.token"} {
		clitest.Check(t, s, commands, clitest.Case{Line: "token rotate ci --write " + file, Out: "wrote " + file + "\n", Asked: rotate})
		if got := fixture.ReadFile(t, file); got != secret+"\n" {
			t.Errorf("%s has %q", file, got)
		}
	}
	clitest.Check(t, s, commands,
		clitest.Case{Line: "token rotate ci --write config.yaml", Code: cli.Failed, Err: "config.yaml exists, and holds no token"},
		clitest.Case{Line: "token rotate ci --write none/x.token", Code: cli.Failed, Err: "no such file"},
		clitest.Case{Line: "token rotate ci --write .", Code: cli.Failed, Err: "not a regular file"},
		clitest.Case{Line: "token rotate no --write new.token", Code: cli.Failed, Err: "nothing is at", Asked: "POST /api/v1/tokens/no/rotate"},
	)
	for _, file := range []string{"new.token", "empty", "old.token"} {
		fixture.WantMode(t, file, 0o600)
	}
	fixture.WantMode(t, "link.token", os.ModeSymlink|0o777)
	if got := fixture.ReadFile(t, "new.token"); got != secret+"\n" {
		t.Errorf("a refusal has changed the file: %q", got)
	}
	if left, err := filepath.Glob("*"); len(left) != 5 || err != nil {
		t.Errorf("there are %q, %v; want no other files", left, err)
	}
	got := clitest.Run(t, commands(), "", "token create ci --role viewer --write new.token -o json")
	fixture.WantNoText(t, "the output", got.Out+got.Err, secret)
}

// TestLostSecret: a secret that cannot be printed is lost, and the error says what to do.
func TestLostSecret(t *testing.T) {
	serve(t)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		fixture.Missing(t, err) // it fails where every test has to run
	}
	defer full.Close()
	root, errs := &cobra.Command{Use: "drover"}, &strings.Builder{}
	root.AddCommand(commands()...)
	if code := cli.Execute(t.Context(), root, []string{"token", "rotate", "ci"}, full, errs); code != cli.Failed {
		t.Errorf("exit %d", code)
	}
	fixture.WantText(t, "the error", errs.String(), `token "ci" is made, and its secret is lost`, "drover token rotate ci gives it another")
}
