package main

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/pem"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"drover/e2e/fixture"
	"drover/httpboot"
	"drover/pools"
	"drover/pools/state"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"drover": func() {
			ctx, stop := untilSignal(context.Background())
			defer stop()
			os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
		},
	})
}

// freePorts gives each script addresses to serve on, in $HTTP, $TFTP and $API.
func freePorts(env *testscript.Env) error {
	for _, name := range []string{"HTTP", "HTTPS", "TFTP", "API"} {
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

// seed makes a state directory of a server that leased addresses and saw unknown
// machines: "seed DIR".
func seed(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: seed DIR")
	}
	store, err := state.Open(ts.MkAbs(args[0]), state.Options{})
	ts.Check(err)
	first, last := netip.MustParseAddr("10.28.72.10"), netip.MustParseAddr("10.28.72.20")
	for i := range byte(2) {
		mac := pools.MAC{0x52, 0x54, 0, 0x77, 1, 1 + i}
		addr := netip.AddrFrom4([4]byte{10, 28, 72, 10 + i})
		p := &pools.Plan{Node: "node-" + mac.Hex(), MAC: mac, Pool: "catchall", CatchAll: true, Range: pools.Range{First: first, Last: last}, Lease: pools.Duration(time.Hour)}
		wait, err := store.Leases.Commit(p, addr, time.Now())
		ts.Check(err)
		ts.Check(wait())
		if i == 1 && !store.Leases.Decline(mac, addr, "in use by 02:00:00:00:00:99", time.Now()) {
			ts.Fatalf("%s is not declined", addr)
		}
	}
	seen := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	known := pools.Unknown{MAC: pools.MAC{0x52, 0x54, 0, 0x77, 1, 1}, First: seen, Last: seen, Count: 1, Pool: "catchall", Address: first,
		Firmware: pools.UEFIx64, Class: "PXEClient:Arch:00007"}
	store.Unknowns.Seen(known)
	store.Unknowns.Seen(known)
	seen = seen.Add(time.Minute)
	store.Unknowns.Seen(pools.Unknown{MAC: pools.MAC{0x52, 0x54, 0, 0x77, 1, 3}, First: seen, Last: seen, Count: 1,
		Relay: netip.MustParseAddr("10.29.0.1"), Circuit: "eth7", Remote: "sw1"})
	ts.Check(store.Close())
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

// pinOfServer puts the pin of a TLS server into $PIN: "pin ADDRESS".
func pinOfServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: pin ADDRESS")
	}
	conn, err := tls.Dial("tcp", args[0], &tls.Config{InsecureSkipVerify: true})
	ts.Check(err)
	defer conn.Close()
	sum := sha256.Sum256(conn.ConnectionState().PeerCertificates[0].RawSubjectPublicKeyInfo)
	ts.Setenv("PIN", hex.EncodeToString(sum[:]))
}

// certificate writes one that an operator might have: "certificate CERT KEY".
func certificate(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: certificate CERT KEY")
	}
	pair, _, err := httpboot.NodeKey(ts.MkAbs(args[1]))
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}), 0o644))
}

// TestScripts runs the real commands as an operator would, one script for each
// subcommand.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       fixture.Update(),
		RequireExplicitExec: true,
		Setup:               freePorts,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"answers":     answers,
			"pin":         pinOfServer,
			"certificate": certificate,
			"envsubst":    envsubst,
			"listed":      listed,
			"seed":        seed,
		},
		RequireUniqueNames: true,
	})
}
