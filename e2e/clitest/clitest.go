// Package clitest runs commands of drover as the program does, against a server that gives the
// answers of a test and keeps what it was asked for.
package clitest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/cmd/drover/cli/contexts"
	"drover/e2e/ilosim"
	"drover/web/answer"
)

// Token is the token of a [Server].
const Token = "a-token-of-a-test"

// Server answers as drover's API does. It refuses other tokens than [Token].
type Server struct {
	URL string

	mu      sync.Mutex
	answers map[string]string
	asked   []string
}

// Serve starts a server, and sets the environment of commands to it. The answers are bodies of
// JSON by method and path, such as "GET /api/v1/nodes", which may have a query; "409 text" is an
// error with that status. Anything else is not found.
func Serve(t testing.TB, answers map[string]string) *Server {
	t.Helper()
	s := &Server{answers: answers}
	srv := httptest.NewServer(http.HandlerFunc(s.answer))
	t.Cleanup(srv.Close)
	s.URL = srv.URL
	file := filepath.Join(t.TempDir(), "api.token")
	if err := os.WriteFile(file, []byte(Token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DROVER_API", s.URL)
	t.Setenv("DROVER_TOKEN_FILE", file)
	t.Setenv(contexts.Env, filepath.Join(t.TempDir(), "contexts.json")) // not those of the developer
	return s
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	line := r.Method + " " + r.URL.RequestURI()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, strings.TrimSpace(line+" "+string(body)))
	text, ok := s.answers[line]
	if !ok {
		text, ok = s.answers[r.Method+" "+r.URL.Path]
	}
	status, message, _ := strings.Cut(text, " ")
	code, err := strconv.Atoi(status)
	switch {
	case r.Header.Get("Authorization") != "Bearer "+Token:
		answer.Write(w, &answer.Error{Code: http.StatusUnauthorized, Msg: "no token"})
	case !ok:
		answer.Write(w, &answer.Error{Code: http.StatusNotFound, Msg: "nothing is at " + line})
	case err == nil:
		answer.Write(w, &answer.Error{Code: code, Msg: message})
	default:
		_, _ = io.WriteString(w, text)
	}
}

// Asked returns the requests since the last call: method, path and query, and the body.
func (s *Server) Asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.asked
	s.asked = nil
	return all
}

// Result is what a command has printed, and its exit code.
type Result struct {
	Code     int
	Out, Err string
}

// Run runs a command line, whose words have no blanks, with an answer of the operator on
// standard input. The commands must be new ones: they keep their flags.
func Run(t testing.TB, commands []*cobra.Command, stdin, line string) Result {
	t.Helper()
	root := &cobra.Command{Use: "drover"}
	root.AddCommand(commands...)
	root.SetIn(strings.NewReader(stdin))
	var out, errs strings.Builder
	code := cli.Execute(t.Context(), root, strings.Fields(line), &out, &errs)
	return Result{code, out.String(), errs.String()}
}

// Case is a command line, and what comes of it.
type Case struct {
	Line  string
	In    string // on standard input
	Code  int
	Out   string // all of standard output
	Err   string // a part of standard error; "": all of it
	Asked string // all requests, one a line
}

// Check runs the cases one after the other.
func Check(t *testing.T, s *Server, commands func() []*cobra.Command, cases ...Case) {
	t.Helper()
	for _, c := range cases {
		got := Run(t, commands(), c.In, c.Line)
		asked := strings.Join(s.Asked(), "\n")
		if got.Code != c.Code || got.Out != c.Out || !strings.Contains(got.Err, c.Err) || c.Err == "" && got.Err != "" || asked != c.Asked {
			t.Errorf("drover %s\ngot exit %d\n%s%sasked for\n%s\nwant exit %d\n%s%s\nasked for\n%s", c.Line, got.Code, got.Out, got.Err, asked, c.Code, c.Out, c.Err, c.Asked)
		}
	}
}

// Chassis starts a chassis and returns the flags that ask it. They pin its key, and have its
// password, in the working directory.
func Chassis(t testing.TB, c *ilosim.Chassis) string {
	t.Helper()
	s, err := c.ServeSSH("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if err := os.WriteFile("pass", []byte(c.Password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return "--chassis m1=" + s.Addr + " --password-file pass --known-hosts known_hosts --known-certs known_certs"
}
