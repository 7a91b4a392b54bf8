package explain

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"drover/dhcp/explain"
	"drover/pools/config"
)

const explainConfig = `server: {interfaces: [lo], address: 10.28.0.2, dhcp: full}
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

// For any file explain returns, and the packet is not longer than the file.
func FuzzCapture(f *testing.F) {
	farm, err := config.Parse("drover.yaml", []byte(explainConfig))
	if err != nil {
		f.Fatal(err)
	}
	files, err := filepath.Glob("../../../dhcp/testdata/recorded/*.hex")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		packet, ok := parseCapture(text)
		if !ok {
			f.Fatalf("%s does not parse", file)
		}
		f.Add(text)
		f.Add(packet)
	}
	e := explain.Server{Farm: farm, Now: time.Now}
	f.Fuzz(func(t *testing.T, data []byte) {
		packet, ok := parseCapture(data)
		if !ok {
			return
		}
		if len(packet) > len(data) {
			t.Errorf("%d bytes of %d", len(packet), len(data))
		}
		if x, silence := e.Explain(packet); x.DHCP == nil && silence == nil {
			t.Error("neither a reply nor silence")
		}
	})
}
