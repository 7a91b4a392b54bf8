package importer_test

import (
	"fmt"
	"strings"
	"testing"

	"drover/hardware/importer"
	"drover/hardware/redfish"
	"drover/pools"
)

// TestHostileServers: an iLO with a serial number that is no name, or with that of another
// iLO, does not keep the others from being imported (finding H12).
func TestHostileServers(t *testing.T) {
	var servers []importer.NamedServer
	for i, serial := range []string{"CZ1", "\x1b[2J", "CZ2", "cz2", strings.Repeat("x", 2000), "CZ3"} {
		mac := pools.MAC{0x52, 0x54, 0, 0, 0, byte(i)}
		servers = append(servers, importer.NamedServer{Host: fmt.Sprintf("ilo%d", i), Server: redfish.Server{Serial: serial, MACs: []pools.MAC{mac}}})
	}
	changes, failed, err := importer.CompareServers(servers, "{{.Serial}}", "p", nil, importer.Stored{})
	if err != nil {
		t.Fatal(err)
	}
	if len(changes) != 2 || changes[0].Name != "cz1" || changes[1].Name != "cz3" {
		t.Errorf("got %v", changes)
	}
	text := fmt.Sprint(failed)
	for _, want := range []string{"ilo1: the name template gives", "ilo2, ilo3 would all be named \"cz2\"", "ilo4: "} {
		if !strings.Contains(text, want) {
			t.Errorf("got %s, want %q", text, want)
		}
	}
	if len(failed) != 3 || len(text) > 1000 {
		t.Errorf("got %d errors of %d bytes: %s", len(failed), len(text), text)
	}
}
