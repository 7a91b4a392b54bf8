package main

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"drover/e2e/fixture"
	"drover/httpboot"
	"drover/imagebuild"
	"drover/pools"
	"drover/pools/resolve"
	"drover/state"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"manual-hardware": hardwareOnHost,
		"drover": func() {
			ctx, stop := untilSignal(context.Background())
			defer stop()
			os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
		},
	})
}

// freePorts sets $HTTP, $TFTP and $API of a script to free addresses.
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
	env.Setenv("GID", strconv.Itoa(os.Getgid()))
	return nil
}

// listed waits until "drover node list" has a node. Usage: listed NODE.
func listed(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: listed NODE")
	}
	fixture.Retry(ts, args[0]+" in the list of nodes", func() error {
		var out, errs strings.Builder
		code := run(context.Background(), []string{"node", "list", "--api", ts.Getenv("DROVER_API"), "--token-file", ts.Getenv("DROVER_TOKEN_FILE")}, &out, &errs)
		if code != 0 || !strings.Contains(out.String(), args[0]+" ") {
			return errors.New(out.String() + errs.String())
		}
		return nil
	})
}

// envsubst replaces variables in a file by their values. Usage: envsubst FILE.
func envsubst(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: envsubst FILE")
	}
	text := os.Expand(ts.ReadFile(args[0]), ts.Getenv)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}

// seed makes a state directory with leases and unknown machines. Usage: seed DIR.
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
		p := &resolve.Plan{Node: "node-" + mac.Hex(), MAC: mac, Pool: "catchall", CatchAll: true, Range: pools.Range{First: first, Last: last}, Lease: pools.Duration(time.Hour)}
		wait, err := store.Leases.Commit(p, addr, time.Now())
		ts.Check(err)
		ts.Check(wait())
		if i == 1 && !store.Leases.Decline(p, addr, "in use by 02:00:00:00:00:99", time.Now()) {
			ts.Fatalf("%s is not declined", addr)
		}
	}
	seen := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	known := pools.Unknown{MAC: pools.MAC{0x52, 0x54, 0, 0x77, 1, 1}, First: seen, Last: seen, Count: 1, Pool: "catchall", Address: first,
		Firmware: pools.UEFIx64, Class: "PXEClient:Arch:00007"}
	store.Unknowns.Seen(known)
	store.Unknowns.Describe(known.MAC, pools.Inventory{Vendor: "HPE", Product: "ProLiant m710x", Serial: "CN1", Slot: "c12n1", CPU: "Xeon D-1587", CPUs: 32, Memory: 64 << 30,
		Disks: []pools.InventoryDisk{{Name: "nvme0n1", Model: "SSD 9", Serial: "S1", Size: 480e9}}, NICs: []pools.InventoryNIC{{Name: "eth0", MAC: "52:54:00:77:01:01", Driver: "mlx4_core", Link: true, Speed: 10000,
			LLDP: &pools.Neighbour{System: "leaf-7", Chassis: "02:00:00:00:00:01", Port: "ge-0/0/7", Description: "rack 7"}}}})
	store.Unknowns.Seen(known)
	seen = seen.Add(time.Minute)
	store.Unknowns.Seen(pools.Unknown{MAC: pools.MAC{0x52, 0x54, 0, 0x77, 1, 3}, First: seen, Last: seen, Count: 1,
		Relay: netip.MustParseAddr("10.29.0.1"), Circuit: "eth7", Remote: "sw1"})
	ts.Check(store.Close())
}

// answers waits until a URL answers 200, or with text that matches. It sends the token of
// $DROVER_TOKEN_FILE. Usage: answers URL [REGEXP].
func answers(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: answers URL [REGEXP]")
	}
	want := regexp.MustCompile("(?m)" + strings.Join(args[1:], ""))
	fixture.Retry(ts, strings.Join(args, " "), func() error {
		req, err := http.NewRequest(http.MethodGet, args[0], http.NoBody)
		ts.Check(err)
		if token, err := os.ReadFile(ts.Getenv("DROVER_TOKEN_FILE")); err == nil {
			req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return err
		}
		if len(args) == 1 && resp.StatusCode != http.StatusOK || !want.Match(body) {
			return fmt.Errorf("%s: %s", resp.Status, body)
		}
		return nil
	})
}

// pinOfServer sets $PIN to the pin of a TLS server: that of its authority, if it sends one.
// Usage: pin ADDRESS.
func pinOfServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: pin ADDRESS")
	}
	conn, err := tls.Dial("tcp", args[0], &tls.Config{InsecureSkipVerify: true})
	ts.Check(err)
	defer conn.Close()
	chain := conn.ConnectionState().PeerCertificates
	sum := sha256.Sum256(chain[len(chain)-1].RawSubjectPublicKeyInfo)
	ts.Setenv("PIN", hex.EncodeToString(sum[:]))
}

// certificate writes a self-signed certificate and its key. Usage: certificate CERT KEY.
func certificate(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: certificate CERT KEY")
	}
	pair, _, err := httpboot.NodeKey(ts.MkAbs(args[1]))
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}), 0o644))
}

// generation makes a generation of an image by hand, created some seconds after 1970, and sets a
// variable to its ID. Usage: generation IMAGES NAME SECONDS VARIABLE.
func generation(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: generation IMAGES NAME SECONDS VARIABLE")
	}
	seconds, err := strconv.ParseInt(args[2], 10, 64)
	ts.Check(err)
	files := map[string][]byte{"kernel": []byte("kernel " + args[2]), "initrd": []byte("initrd"), "root.squashfs": make([]byte, 1e6)}
	m := imagebuild.Manifest{Name: args[1], Created: time.Unix(seconds, 0).UTC(), KernelVersion: "6.1", Platform: "linux/amd64", Files: map[string]imagebuild.File{}}
	for name, content := range files {
		sum := sha256.Sum256(content)
		m.Files[name] = imagebuild.File{Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:])}
	}
	files[imagebuild.ManifestFile], err = json.Marshal(m)
	ts.Check(err)
	dir := ts.MkAbs(filepath.Join(args[0], args[1], m.ID()))
	ts.Check(os.MkdirAll(dir, 0o755))
	for name, content := range files {
		ts.Check(os.WriteFile(filepath.Join(dir, name), content, 0o644))
	}
	ts.Setenv(args[3], m.ID())
}

// TestScripts runs the commands as an operator does, with a script for each subcommand.
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
			"clientcert":  clientCert,
			"envsubst":    envsubst,
			"generation":  generation,
			"listed":      listed,
			"seed":        seed,
		},
		RequireUniqueNames: true,
	})
}
