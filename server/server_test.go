package server

import (
	"log/slog"
	"os"
	"testing"

	"drover/dhcp"
)

const testConfig = `server: {interfaces: [lo], address: 10.28.0.2, dhcp: full}
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

// testServer returns a server of testConfig, without sockets.
func testServer(t *testing.T) *Server {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("drover.yaml", []byte(testConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{Config: "drover.yaml", State: "state", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// Counting a packet allocates nothing.
func TestCountingAllocatesNothing(t *testing.T) {
	s := testServer(t)
	x := dhcp.Exchange{Type: "REQUEST", Decision: dhcp.Acknowledged}
	if n := testing.AllocsPerRun(100, func() { s.metrics.Exchange(x) }); n != 0 {
		t.Errorf("got %v allocations for each packet", n)
	}
}
