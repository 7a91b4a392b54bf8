package explain

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"drover/dhcp/explain"
	"drover/pools/config"
)

// For any file explain returns, and the packet is not longer than the file.
func FuzzCapture(f *testing.F) {
	farm, err := config.Load("../../../dhcp/explain/testdata/farm.yaml")
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
