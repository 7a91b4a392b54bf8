package main

import (
	"context"
	"flag"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "write the golden parts of the scripts anew")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"drover": func() {
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
		},
	})
}

// freePorts gives each script addresses to serve on, in $HTTP, $TFTP and $API.
func freePorts(env *testscript.Env) error {
	for _, name := range []string{"HTTP", "TFTP", "API"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		env.Setenv(name, l.Addr().String())
		if err := l.Close(); err != nil {
			return err
		}
	}
	env.Setenv("DROVER_API", "http://"+env.Getenv("API"))
	env.Setenv("DROVER_TOKEN_FILE", env.WorkDir+"/state/api.token")
	return nil
}

// listed waits until "drover node list" has a node: "listed NAME".
func listed(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: listed NODE")
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		var out, errs strings.Builder
		code := run(context.Background(), []string{"node", "list", "--api", ts.Getenv("DROVER_API"), "--token-file", ts.Getenv("DROVER_TOKEN_FILE")}, &out, &errs)
		if code == 0 && strings.Contains(out.String(), args[0]+" ") {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%s is not listed:\n%s%s", args[0], out.String(), errs.String())
		}
	}
}

// envsubst puts the script's variables into a file: "envsubst FILE".
func envsubst(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: envsubst FILE")
	}
	text := os.Expand(ts.ReadFile(args[0]), ts.Getenv)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}

// answers waits until a URL answers 200: "answers URL".
func answers(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: answers URL")
	}
	for deadline := time.Now().Add(20 * time.Second); ; {
		resp, err := http.Get(args[0])
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%s does not answer: %v", args[0], err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// TestScripts runs the real commands as an operator would, one script for each
// subcommand.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		Setup:               freePorts,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"answers":  answers,
			"envsubst": envsubst,
			"listed":   listed,
		},
		RequireUniqueNames: true,
	})
}
