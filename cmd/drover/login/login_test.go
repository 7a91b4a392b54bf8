package login_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"drover/cmd/drover/cli"
	"drover/cmd/drover/cli/contexts"
	"drover/cmd/drover/login"
	"drover/e2e/clitest"
	"drover/e2e/fixture"
)

const version = "GET /api/v1/version"

func serve(t *testing.T) *clitest.Server {
	return clitest.Serve(t, map[string]string{version: "{}"})
}

// wantContexts fails the test unless the contexts have these names, with the current one in front.
func wantContexts(t *testing.T, want ...string) {
	t.Helper()
	all, err := contexts.Load()
	if err != nil {
		t.Fatal(err)
	}
	got := []string{all.Current}
	for _, x := range all.All {
		got = append(got, x.Name)
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("got contexts %q, want %q", got, want)
	}
}

// TestUsage: a mistake asks no server, and keeps nothing.
func TestUsage(t *testing.T) {
	s := serve(t)
	pin := strings.Repeat("0a", 32)
	for line, want := range map[string]string{
		"login":                                                           "accepts 1 arg",
		"login " + s.URL + " a-token":                                     "accepts 1 arg", // a token is no argument: others of the host see those
		"login drover.example.org":                                        "want https://HOST:PORT",
		"login http://192.0.2.1:8443":                                     "plain HTTP would show the token to the network",
		"login https://a:b@[::1]":                                         "want http://127.0.0.1:8443",
		"login https://[::1] --pin 12":                                    `pin "12": want sha256: and 64 hexadecimal digits`,
		"login https://[::1] --ca-file /dev/null --pin " + pin:            "give one of them",
		"login https://[::1] --client-cert c":                             "client-cert client-key",
		"login https://[::1] --client-cert c --client-key k":              "client certificate: ",
		"login https://[::1] --client-cert c --client-key k --token-file": "needs an argument",
		"logout":         "requires at least 1 arg",
		"context rm a":   "unknown command",
		"context use":    "accepts 1 arg",
		"context list a": "unknown command",
	} {
		clitest.Check(t, s, login.Commands, clitest.Case{Line: line, In: clitest.Token, Code: cli.Usage, Err: want})
	}
	clitest.Check(t, s, login.Commands,
		clitest.Case{Line: "login " + s.URL, Code: cli.Failed, Err: "standard input does not hold a token"},
		clitest.Case{Line: "login " + s.URL, In: "two tokens", Code: cli.Failed, Err: "standard input does not hold a token"},
		clitest.Case{Line: "login " + s.URL + " --token-file none", Code: cli.Failed, Err: "--token-file: "},
		clitest.Case{Line: "login " + s.URL, In: "another", Code: cli.Refused, Err: "refused the token in the input", Asked: version},
	)
	wantContexts(t, "")
}

// TestContexts: a login is the current context, in a file for its owner alone; no command prints
// its token, and a logout forgets it.
func TestContexts(t *testing.T) {
	s := serve(t)
	clitest.Check(t, s, login.Commands,
		clitest.Case{Line: "login " + s.URL + "/ --name rack", In: clitest.Token + "\n", Out: "logged in to " + s.URL + ", as context rack\n", Asked: version},
		clitest.Case{Line: "login " + s.URL + " --name a/b", In: clitest.Token, Code: cli.Failed, Err: `context "a/b": want letters`, Asked: version},
		clitest.Case{Line: "login " + s.URL + " --name two -o name", In: clitest.Token, Out: "two\n", Asked: version},
		clitest.Case{Line: "context list", Out: fmt.Sprintf("CURRENT  NAME  %-*s  TRUST\n-        rack  %[3]s  this host alone\n*        two   %[3]s  this host alone\n", len(s.URL), "URL", s.URL)},
		clitest.Case{Line: "context use rack", Out: "commands now ask rack\n"},
		clitest.Case{Line: "context use none", Code: cli.Failed, Err: `no context "none"`},
	)
	wantContexts(t, "rack", "rack", "two")
	fixture.WantMode(t, os.Getenv(contexts.Env), 0o600)
	fixture.WantText(t, "the file", fixture.ReadFile(t, os.Getenv(contexts.Env)), clitest.Token)
	got := clitest.Run(t, login.Commands(), "", "context list -o json")
	fixture.WantText(t, "the list", got.Out, `"name": "rack"`)
	fixture.WantNoText(t, "the list", got.Out, clitest.Token)
	clitest.Check(t, s, login.Commands,
		clitest.Case{Line: "context use -", Out: "commands now ask -\n"},
		clitest.Case{Line: "logout two none rack", Code: cli.Partly, Out: "logged out of two\nlogged out of rack\n", Err: `no context "none"`},
	)
	wantContexts(t, "")
	fixture.WantNoText(t, "the file", fixture.ReadFile(t, os.Getenv(contexts.Env)), clitest.Token)
}

// TestTrust: the token goes to no server that is not known.
func TestTrust(t *testing.T) {
	serve(t)
	var asked atomic.Int32
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = io.WriteString(w, "{}")
	}))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	t.Cleanup(srv.Close)
	sum := sha256.Sum256(srv.Certificate().RawSubjectPublicKeyInfo)
	pin := hex.EncodeToString(sum[:])
	t.Chdir(fixture.Tree(t, map[string]string{
		"ca.pem": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})), "no.pem": "none",
	}))
	for _, tt := range []struct {
		flags string
		code  int
		says  string
	}{
		{"", cli.Unreachable, "(give --ca-file, or --pin: drover doctor shows the pin"},
		{"--pin " + strings.Repeat("0a", 32), cli.Unreachable, "not the one that is pinned"},
		{"--ca-file no.pem", cli.Usage, "not a certificate in PEM"},
		{"--ca-file none.pem", cli.Failed, "no such file"},
		{"--pin sha256:" + pin, 0, "logged in"},
		{"--ca-file ca.pem", 0, "logged in"},
	} {
		asked.Store(0)
		got := clitest.Run(t, login.Commands(), clitest.Token, "login "+srv.URL+" --name x "+tt.flags)
		if want := tt.code == 0; got.Code != tt.code || !strings.Contains(got.Out+got.Err, tt.says) || asked.Load() > 0 != want {
			t.Errorf("%q: %+v, %d requests; want exit %d that says %q", tt.flags, got, asked.Load(), tt.code, tt.says)
		}
	}
}
