package cli_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/cmd/drover/cli/contexts"
	"drover/e2e/clitest"
	"drover/e2e/fixture"
	"drover/web/client"
)

func TestCodeOf(t *testing.T) {
	wrapped := errors.Join(errors.New("a"), &cli.Error{Code: cli.Unreachable, Err: errors.New("b")})
	for err, want := range map[error]int{nil: 0, errors.New("x"): 1, &cli.Error{Code: cli.Usage, Err: nil}: 2, wrapped: 4, context.Canceled: 1} {
		if got := cli.CodeOf(err); got != want {
			t.Errorf("%v: got %d, want %d", err, got, want)
		}
	}
	if got := (&cli.Error{Code: cli.Failed, Err: nil}).Error(); got != "" {
		t.Errorf("got %q for nothing to say", got)
	}
}

// commands are some that use what this package has: a list, a removal, and one that asks.
func commands() []*cobra.Command {
	var c, d cli.Client
	var order cli.Order
	list := &cobra.Command{Use: "list", Args: cobra.NoArgs}
	cli.Show(list, "text", func(ctx context.Context, _ []string) ([]string, error) {
		by, err := order.Query()
		if err != nil {
			return nil, err
		}
		return cli.Get(ctx, &c, client.Path[[]string]("/api/v1/nodes"), "sort", by, "pool", "")
	}, func(w io.Writer, all []string) error {
		_, err := fmt.Fprintln(w, strings.Join(all, "\n"))
		return err
	})
	order.Flag(list, "name", "pool")
	c.Flags(list)
	rm := d.DeleteEach(&cobra.Command{Use: "rm NAME...", Args: cobra.MinimumNArgs(1)}, client.RemoveNode, "removed", func(name string) error {
		if strings.HasPrefix(name, "-") || name == "bad" {
			return errors.New("no name: " + name)
		}
		return nil
	})
	d.Flags(rm)
	var yes bool
	ask := &cobra.Command{Use: "ask", RunE: func(cmd *cobra.Command, _ []string) error { return cli.Confirm(cmd, yes, "really?") }}
	cli.YesFlag(ask, &yes)
	return []*cobra.Command{list, rm, ask}
}

// TestUsage: a wrong command line is exit code 2, and sends no request.
func TestUsage(t *testing.T) {
	s := clitest.Serve(t, nil)
	for line, want := range map[string]string{
		"lists":                                   `unknown command "lists"`,
		"list x":                                  `unknown command "x"`,
		"list --frobnicate":                       "unknown flag",
		"list -o xml":                             `unknown output "xml" (text, json or yaml)`,
		"list -o jsonpath={":                      "--output: ",
		"list --sort size":                        `--sort "size": want one of name, pool`,
		"list --sort --name":                      `--sort "--name"`,
		"list --context c --api http://[::1]":     "give one of them",
		"list --context none":                     `no context "none"`,
		"list --api http://192.0.2.1":             "plain HTTP would show the token to the network",
		"list --api https://a:b@[::1]":            "want http://127.0.0.1:8443",
		"list --api ftp://x":                      "want http://127.0.0.1:8443 or https://HOST:PORT",
		"list --api http://localhost.example.org": "plain HTTP would show the token to the network",
		"rm":       "requires at least 1 arg",
		"rm a bad": "no name: bad", // a is not removed
	} {
		clitest.Check(t, s, commands, clitest.Case{Line: line, Code: cli.Usage, Err: want})
	}
	if code := cli.Execute(t.Context(), &cobra.Command{Use: "drover", Args: cobra.MinimumNArgs(1), Run: func(*cobra.Command, []string) { t.Error("it ran") }}, []string{"a", " "}, os.Stderr, os.Stderr); code != cli.Usage {
		t.Errorf("an empty argument: exit %d", code)
	}
}

// TestConfirm: anything but yes does nothing, and -y asks nothing.
func TestConfirm(t *testing.T) {
	s := clitest.Serve(t, nil)
	clitest.Check(t, s, commands,
		clitest.Case{Line: "ask", In: "y\n", Err: "really? [y/N] "},
		clitest.Case{Line: "ask", In: " YES", Err: "really? [y/N] "},
		clitest.Case{Line: "ask -y"},
		clitest.Case{Line: "ask", In: "n\n", Code: cli.Failed, Err: "drover: nothing is done\n"},
		clitest.Case{Line: "ask", In: "yess\n", Code: cli.Failed, Err: "nothing is done"},
		clitest.Case{Line: "ask", In: "\n", Code: cli.Failed, Err: "nothing is done"},
		clitest.Case{Line: "ask", Code: cli.Usage, Err: "there was no answer (-y says yes)"},
	)
}

// TestExitCodes: a server that refuses, one that is not there, and a part of several removals.
func TestExitCodes(t *testing.T) {
	s := clitest.Serve(t, map[string]string{
		"GET /api/v1/nodes": `["n1", "n\u001b[2J2"]`, "DELETE /api/v1/nodes/a": "null", "DELETE /api/v1/nodes/c": "null",
		"DELETE /api/v1/nodes/b": "409 it boots", "DELETE /api/v1/nodes/no": "403 a viewer may not",
	})
	const list, rm = "GET /api/v1/nodes?sort=name", "DELETE /api/v1/nodes/"
	clitest.Check(t, s, commands,
		clitest.Case{Line: "list", Out: "n1\nn?[2J2\n", Asked: list},
		clitest.Case{Line: "list --sort -pool -o json", Out: "[\n  \"n1\",\n  \"n\\u001b[2J2\"\n]\n", Asked: "GET /api/v1/nodes?sort=-pool"},
		clitest.Case{Line: "list -o jsonpath={[0]}", Out: "n1\n", Asked: list},
		clitest.Case{Line: "rm a b c", Code: cli.Partly, Out: "removed a\nremoved c\n", Err: "it boots", Asked: rm + "a\n" + rm + "b\n" + rm + "c"},
		clitest.Case{Line: "rm b", Code: cli.Failed, Err: "it boots", Asked: rm + "b"},
		clitest.Case{Line: "rm no a", Code: cli.Refused, Err: "a viewer may not", Asked: rm + "no"},
		clitest.Case{Line: "rm b -o json", Code: cli.Failed, Out: "[]\n", Err: "it boots", Asked: rm + "b"},
		clitest.Case{Line: "list --api http://127.0.0.1:1", Code: cli.Unreachable, Err: "http://127.0.0.1:1 does not answer"},
	)
	wrong := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(wrong, []byte("wrong-secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := clitest.Run(t, commands(), "", "rm a b --token-file "+wrong)
	if asked := s.Asked(); got.Code != cli.Refused || len(asked) != 1 {
		t.Errorf("another token: %+v, asked for %q; want one request", got, asked)
	}
	fixture.WantNoText(t, "the output", got.Out+got.Err, "wrong-secret")
}

// TestWhichServer: --api has precedence over the current context, and
// --context over both.
func TestWhichServer(t *testing.T) {
	mine := clitest.Serve(t, map[string]string{"GET /api/v1/nodes": `["of the context"]`})
	all, err := contexts.Load()
	if err != nil {
		t.Fatal(err)
	}
	if err := all.Put(contexts.Context{Name: "rack", URL: mine.URL, Token: clitest.Token}); err != nil {
		t.Fatal(err)
	}
	file := os.Getenv(contexts.Env)
	other := clitest.Serve(t, map[string]string{"GET /api/v1/nodes": `["of the flag"]`})
	t.Setenv(contexts.Env, file)
	clitest.Check(t, other, commands, clitest.Case{Line: "list", Out: "of the flag\n", Asked: "GET /api/v1/nodes?sort=name"})
	clitest.Check(t, mine, commands, clitest.Case{Line: "list --context rack", Out: "of the context\n", Asked: "GET /api/v1/nodes?sort=name"})
	t.Setenv("DROVER_API", "")
	t.Setenv("DROVER_TOKEN_FILE", "")
	clitest.Check(t, mine, commands, clitest.Case{Line: "list", Out: "of the context\n", Asked: "GET /api/v1/nodes?sort=name"})
	if asked := other.Asked(); len(asked) > 0 {
		t.Errorf("the other server was asked: %q", asked)
	}
}

// TestRedirect: a token goes to no other server, also when the one that has it sends a client there.
func TestRedirect(t *testing.T) {
	there := clitest.Serve(t, map[string]string{"GET /api/v1/nodes": "[]"})
	for _, code := range []int{http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		here := httptest.NewServer(http.RedirectHandler(there.URL+"/api/v1/nodes", code))
		got := clitest.Run(t, commands(), "", "list --api "+here.URL)
		here.Close()
		if asked := there.Asked(); got.Code != cli.Failed || len(asked) > 0 {
			t.Errorf("%d: %+v, asked for %q", code, got, asked)
		}
	}
}
