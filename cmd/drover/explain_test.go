package main

import (
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"drover/cmd/drover/cli"
	"drover/cmd/drover/explain"
	"drover/pools"
	"drover/pools/resolve"
	"drover/server"
)

const explainConfig = `server: {interfaces: [lo], address: 10.28.0.2, dhcp: MODE}
subnets:
  - {cidr: 10.28.0.0/16, router: 10.28.0.1, dns: [10.28.0.1], domain: example.org}
  - {cidr: 10.29.0.0/16, router: 10.29.0.1}
tags: {all: {dhcpOptions: {ntp-server: 10.28.0.1, "43": "hex:0102"}}}
pools:
  - name: web
    image: debian-12
    nodes:
      - {name: m1, macs: ["52:54:00:77:01:01"], ip: 10.28.0.10}
      - {name: m4, macs: ["52:54:00:77:01:09"], ip: 10.28.0.14, ignore: true}
      - {name: m2, match: {circuitID: eth7}, ip: 10.29.0.15}
  - {name: rest, catchall: true, image: debian-12, range: 10.28.72.10-10.28.72.250, lease: 5m}
`

// liveServer returns the server of drover serve, with its REST API on a test listener and
// without sockets of its own.
func liveServer(t *testing.T, mode string) *server.Server {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("drover.yaml", []byte(strings.Replace(explainConfig, "MODE", mode, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := server.New(server.Options{Config: "drover.yaml", State: "state", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	s.DHCP[0].Address = s.Live.Farm().Address() // Listen finds it on the interface
	api := httptest.NewServer(s.Web.Handler())
	t.Cleanup(api.Close)
	t.Setenv("DROVER_API", api.URL)
	token, err := filepath.Abs("state/api.token")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("DROVER_TOKEN_FILE", token)
	return s
}

// explained returns the packet that drover explain shows; empty for silence.
func explained(t *testing.T, args ...string) string {
	t.Helper()
	var stdout, stderr strings.Builder
	code := run(t.Context(), append([]string{"explain", "-c", "drover.yaml", "--live", "-o", "json"}, args...), &stdout, &stderr)
	if code != 0 {
		if code != cli.Failed || !strings.Contains(stderr.String(), "gets silence") {
			t.Fatalf("exit %d: %s", code, &stderr)
		}
		return ""
	}
	var x struct{ DHCP struct{ Packet string } }
	if err := json.Unmarshal([]byte(stdout.String()), &x); err != nil {
		t.Fatal(err)
	}
	return x.DHCP.Packet
}

// Explain shows, byte for byte, the answer of a running DHCP server to the same
// request.
func TestExplainIsWhatTheServerSends(t *testing.T) {
	for _, mode := range []string{"full", "proxy"} {
		t.Run(mode, func(t *testing.T) {
			s := liveServer(t, mode)
			added := pools.PoolNode{Pool: "web", Node: pools.Node{Name: "m3", MACs: []pools.MAC{{0x52, 0x54, 0, 0x77, 1, 3}}, IP: netip.MustParseAddr("10.28.0.13")}}
			if err := s.Live.AddNode(added); err != nil {
				t.Fatal(err)
			}
			leased := pools.MAC{0x52, 0x54, 0, 0x77, 1, 4}
			wait, err := s.Store.Leases.Commit(s.Machines.Resolve(resolve.Query{MAC: leased}), netip.MustParseAddr("10.28.72.99"), time.Now())
			if err != nil || wait() != nil {
				t.Fatal("no lease")
			}
			relayed := []string{"--relay", "10.29.0.1", "--circuit-id", "eth7"}
			for _, who := range []struct {
				mac  string
				args []string
			}{{"52:54:00:77:01:01", nil}, {"52:54:00:77:01:02", relayed}, {"52:54:00:77:01:03", nil}, {"52:54:00:77:01:04", nil}} {
				for _, arch := range append(slices.Clone(pools.Firmwares), explain.OperatingSystem) {
					arch := string(arch)
					a := explain.Client{Arch: arch}
					if who.args != nil {
						a.Relay, a.CircuitID = "10.29.0.1", "eth7"
					}
					request, err := a.Request([]string{who.mac})
					if err != nil {
						t.Fatal(err)
					}
					packet, x := s.DHCP[0].ReplyTo(request, time.Now())
					want := hex.EncodeToString(packet)
					if want == "" && (mode != "proxy" || arch != explain.OperatingSystem) {
						t.Errorf("%s %s: silence: %s %s %v", who.mac, arch, x.Decision, x.Why, x.Err)
					}
					if got := explained(t, append([]string{who.mac, "--arch", arch}, who.args...)...); got != want {
						t.Errorf("%s %s:\ngot  %s\nwant %s", who.mac, arch, got, want)
					}
				}
			}
		})
	}
}

// Explain shows the server's answers to the recordings of real clients too.
func TestExplainRecorded(t *testing.T) {
	files, err := filepath.Glob("../../dhcp/testdata/recorded/*.hex")
	if err != nil || len(files) == 0 {
		t.Fatal("no recordings", err)
	}
	for i := range files {
		if files[i], err = filepath.Abs(files[i]); err != nil {
			t.Fatal(err)
		}
	}
	s := liveServer(t, "full")
	for _, file := range files {
		request, err := explain.ReadCapture(file)
		if err != nil {
			t.Fatal(err)
		}
		packet, x := s.DHCP[0].ReplyTo(request, time.Now())
		if x.Type != "DISCOVER" || x.Reply != "OFFER" {
			t.Errorf("%s: got %s, %s", file, x.Type, x.Reply)
		}
		// The lease makes explain and the server use the same address.
		wait, err := s.Store.Leases.Commit(x.Plan, x.Address, time.Now())
		if err != nil || wait() != nil {
			t.Fatal("no lease", err)
		}
		if got, want := explained(t, "--request", file), hex.EncodeToString(packet); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", file, got, want)
		}
	}
}
