package doctor

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"drover/e2e/fixture"
	"drover/pools/config"
)

// inTest returns a doctor of a farm.
func inTest(t *testing.T) *doctor {
	t.Helper()
	farm, err := config.Parse("drover.yaml", []byte("server: {interfaces: [eth1], address: 10.28.0.2}\nsubnets: [{cidr: 10.28.0.0/16}]\npools: [{name: web, image: i}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	return &doctor{farm: farm, state: t.TempDir(), now: time.Now}
}

// results returns the findings as words.
func (d *doctor) results() (out []string) {
	for _, f := range d.findings {
		out = append(out, f.Check+" "+string(f.Result))
	}
	return out
}

// TestFirewall: a firewall that drops the ports of machines is a fault, one that lets them in
// is none.
func TestFirewall(t *testing.T) {
	const nft = "table inet filter {\n\tchain input {\n\t\ttype filter hook input priority filter; policy drop;\n\t\tct state established,related accept\n\t\tiifname \"lo\" accept\n"
	const tables = "*filter\n:INPUT DROP [0:0]\n:OUTPUT ACCEPT [0:0]\n-A INPUT -i lo -j ACCEPT\n-A INPUT -m state --state RELATED,ESTABLISHED -j ACCEPT\n"
	for rules, want := range map[string]string{
		"": "",
		"table inet filter {\n\tchain input {\n\t\ttype filter hook input priority filter; policy accept;\n": "",
		nft:                               "67 69 80",
		nft + "\t\ttcp dport 22 accept\n": "67 69 80",
		nft + "\t\tudp dport { 67, 69 } accept\n":                       "80",
		nft + "\t\tudp dport 67-69 accept\n\t\ttcp dport 80 accept\n":   "",
		nft + "\t\tudp dport 6789 accept\n\t\ttcp dport 8080 accept\n":  "67 69 80",
		nft + "\t\tiifname \"eth1\" accept\n":                           "",
		nft + "\t\tip saddr 10.28.0.0/16 accept\n":                      "",
		nft + "\t\ticmp type echo-request ip saddr 10.0.0.0/8 accept\n": "67 69 80",
		tables: "67 69 80",
		tables + "-A INPUT -p udp -m multiport --dports 67,69 -j ACCEPT\n":                                "80",
		tables + "-A INPUT -p udp --dport 67:69 -j ACCEPT\n-A INPUT -p tcp -m tcp --dport 80 -j ACCEPT\n": "",
		tables + "-A INPUT -i eth1 -j ACCEPT\n":                                                           "",
		tables + "-A INPUT -p udp --sport 67 -j ACCEPT\n":                                                 "67 69 80",
		strings.ReplaceAll(tables, ":INPUT DROP", ":INPUT ACCEPT"):                                        "",
	} {
		if got := strings.Join(inTest(t).closed(rules), " "); got != want {
			t.Errorf("got %q, want %q of\n%s", got, want, rules)
		}
	}
}

// TestDisk: a disk that is full, has no inodes, or is read-only.
func TestDisk(t *testing.T) {
	const gib = 1 << 30
	for _, tt := range []struct {
		s    unix.Statfs_t
		want string
	}{
		{unix.Statfs_t{Bsize: 4096, Bavail: gib / 4096, Files: 1e6, Ffree: 1e5}, "disk ok"},
		{unix.Statfs_t{Bsize: 4096, Bavail: gib / 4096}, "disk ok"}, // a file system without inodes, such as btrfs
		{unix.Statfs_t{Bsize: 4096, Bavail: 100, Files: 1e6, Ffree: 1e5}, "disk fault"},
		{unix.Statfs_t{Bsize: 4096, Bavail: gib / 4096, Files: 1e6, Ffree: 10}, "disk fault"},
		{unix.Statfs_t{Bsize: 4096, Bavail: gib / 4096, Files: 1e6, Ffree: 1e5, Flags: unix.ST_RDONLY}, "disk fault"},
	} {
		d := inTest(t)
		d.disk(d.state, &tt.s)
		if got := d.results(); !slices.Equal(got, []string{tt.want}) || d.findings[0].Result == fault && d.findings[0].Remedy == "" {
			t.Errorf("%+v: got %+v, want %s", tt.s, d.findings, tt.want)
		}
	}
}

// TestClock: a clock of before this program was written, and one that nothing keeps right.
func TestClock(t *testing.T) {
	now := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		now  time.Time
		free bool
		want string
	}{{now, false, "clock ok"}, {now, true, "clock warning"}, {time.Unix(0, 0), true, "clock fault"}, {time.Unix(0, 0), false, "clock fault"}} {
		d := inTest(t)
		d.clockAt(tt.now, tt.free)
		if got := d.results(); !slices.Equal(got, []string{tt.want}) {
			t.Errorf("%v %v: got %q, want %s", tt.now, tt.free, got, tt.want)
		}
	}
}

// TestOwner: a file of the state that belongs to another user.
func TestOwner(t *testing.T) {
	fixture.Root(t)
	d := inTest(t)
	path := filepath.Join(d.state, "drover.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if d.stateDirectory(); !slices.Equal(d.results(), []string{"state ok"}) {
		t.Errorf("got %+v", d.findings)
	}
	if err := os.Chown(path, 12345, -1); err != nil {
		t.Fatal(err)
	}
	d.findings = nil
	if d.stateDirectory(); !slices.Equal(d.results(), []string{"state fault"}) || !strings.Contains(d.findings[0].Remedy, "chown --reference="+d.state) {
		t.Errorf("got %+v", d.findings)
	}
}

// TestTFTP: a server that answers HTTP, and whose TFTP nobody reaches.
func TestTFTP(t *testing.T) {
	d := inTest(t)
	d.running, d.loaders = true, t.TempDir()
	d.farm.Config.Server.TFTP = "127.0.0.1:9" // discard: nobody listens in a test
	if err := os.WriteFile(filepath.Join(d.loaders, "undionly.kpxe"), []byte("loader"), 0o600); err != nil {
		t.Fatal(err)
	}
	if d.tftp(t.Context()); !slices.Equal(d.results(), []string{"tftp fault"}) {
		t.Errorf("got %+v", d.findings)
	}
}
