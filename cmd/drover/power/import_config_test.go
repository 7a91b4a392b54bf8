package power_test

import (
	"strings"
	"testing"

	"drover/e2e/fixture"
)

// TestImportConfigCodes: the imports from configs have the exit codes of all imports.
func TestImportConfigCodes(t *testing.T) {
	t.Chdir(fixture.Tree(t, map[string]string{
		"ok.csv":    "name,mac,ip\na,02:00:00:00:00:01,10.28.1.2\n",
		"odd.csv":   "name,mac,ip,shelf\na,02:00:00:00:00:01,10.28.1.2,7\n",
		"clash.csv": "name,mac,ip\na,02:00:00:00:00:01,10.28.1.2\nb,02:00:00:00:00:01,10.28.1.3\n",
		"no.csv":    "colour\nred\n",
		"some.conf": "dhcp-range=tag:x,10.28.0.100,10.28.0.150,255.255.255.0\ndhcp-mac=set:x,52:54:*:*:*:*\n",
		"pw.yaml":   "ltsp: {config: {rootPasswd: $6$salt$notTheHashOfAnything}}\nnodePools: [{range: \"10.28.0.100,10.28.0.150,255.255.0.0\"}]\n",
		"none.conf": "dhcp-range=10.28.0.100,10.28.0.150,255.255.255.0\ndhcp-ignore=tag:#known\n",
	}))
	for _, tt := range []struct {
		line, says string
		code       int
	}{
		{"csv ok.csv --dry-run", "1 nodes: 1 new", 0},
		{"csv", "no file is named", 2},
		{"csv nowhere.csv", "no such file", 1},
		{"csv ok.csv --subnet x", "want a network", 2},
		{"csv ok.csv --dhcp some", "want full, proxy or off", 2},
		{"csv ok.csv --address fd00::1", "want the IPv4 address", 2},
		{"csv ok.csv --pool A_B", "want a name", 2},
		{"csv ok.csv -o table", "text, json or yaml", 2},
		{"csv ok.csv --apply --output x.yaml", "neither --output nor --config", 2},
		{"csv ok.csv --frobnicate", "unknown flag", 2},
		{"csv ok.csv -c nowhere.yaml", "no such file", 1},
		{"csv odd.csv --dry-run", "odd.csv:1: not understood: shelf", 3},
		{"dnsmasq some.conf --dry-run", "some.conf:1: restricted: dhcp-range: range 10.28.0.100-10.28.0.150 is left out, by the rule tag:x", 3},
		{"kubefarm pw.yaml --dry-run", "pw.yaml:1: restricted: ltsp.config.rootPasswd: catch-all pools are left without root's password", 3},
		{"dnsmasq none.conf --dry-run", "there is no catch-all pool", 0},
		{"csv ok.csv --apply --api http://127.0.0.1:1 --token-file ok.csv", "does not", 1},
		{"csv no.csv", "no column has the MACs", 1},
		{"kea ok.csv", "not understood", 1},
		{"csv clash.csv --dry-run", "machines in conflict", 3},
	} {
		code, out, errs := drover(t, "import "+tt.line)
		if code != tt.code || !strings.Contains(out+errs, tt.says) {
			t.Errorf("drover import %s: exit %d\n%s%s\nwant exit %d that says %q", tt.line, code, out, errs, tt.code, tt.says)
		}
	}
}
