package migrate_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/e2e/importtest"
	"drover/hardware/importer"
	"drover/migrate"
	"drover/migrate/dhcpd"
	"drover/migrate/dnsmasq"
	"drover/migrate/inventory"
	"drover/migrate/kea"
	"drover/migrate/kubefarm"
	"drover/migrate/matchbox"
	"drover/migrate/warewulf"
	"drover/pools/config"
)

// conf reads files of dnsmasq alone.
func conf(f *migrate.Farm, files []string) error { return dnsmasq.Read(f, files, nil, nil) }

// formats are the examples of testdata, each with its reader.
var formats = []struct {
	name  string
	read  func(*migrate.Farm, []string) error
	files []string
}{
	{"kubefarm", kubefarm.Read, []string{"values.yaml", "site.yaml"}},
	{"kubefarm-catchall", kubefarm.Read, []string{"values.yaml"}},
	{"kubefarm-empty", kubefarm.Read, []string{"values.yaml"}},
	{"kubefarm-tags", kubefarm.Read, []string{"values.yaml"}},
	{"dnsmasq", conf, []string{"dnsmasq.conf"}},
	{"dnsmasq-boot", conf, []string{"dnsmasq.conf"}},
	{"dnsmasq-controller", dnsmasq.ReadObjects, []string{"objects.yaml"}},
	{"isc-dhcpd", dhcpd.Read, []string{"dhcpd.conf"}},
	{"isc-dhcpd-boot", dhcpd.Read, []string{"dhcpd.conf"}},
	{"kea", kea.Read, []string{"kea-dhcp4.conf"}},
	{"kea6", kea.Read, []string{"kea-dhcp4.conf", "kea-dhcp6.conf"}},
	{"matchbox", matchbox.Read, []string{"."}},
	{"warewulf", warewulf.Read, []string{"nodes.conf", "warewulf.conf"}},
	{"csv", inventory.Read, []string{"machines.csv"}},
	{"csv-maas", inventory.Read, []string{"machines.csv"}},
	{"csv-foreman", inventory.Read, []string{"hosts.csv"}},
}

// TestFormats compares what each example becomes with the golden files, checks the config as
// drover check does, and imports it again: then nothing changes.
func TestFormats(t *testing.T) {
	for _, tt := range formats {
		t.Run(tt.name, func(t *testing.T) {
			golden, err := filepath.Abs(filepath.Join("testdata", tt.name))
			if err != nil {
				t.Fatal(err)
			}
			t.Chdir(golden)
			output := filepath.Join(t.TempDir(), "drover.yaml")
			i := migrate.Import{Command: "drover import " + tt.name, Output: output,
				Read: func(f *migrate.Farm) error { return tt.read(f, tt.files) }}
			r, err := i.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Write(nil); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(output)
			if err != nil {
				t.Fatal(err)
			}
			fixture.Golden(t, filepath.Join(golden, "want.yaml"), text)
			fixture.Golden(t, filepath.Join(golden, "want.txt"), importtest.Report(r))
			if _, err := config.Parse("drover.yaml", text); err != nil {
				t.Errorf("the config has mistakes:\n%v", err)
			}
			again(t, i, string(text))
		})
	}
}

// again imports into a file that has everything already.
func again(t *testing.T, i migrate.Import, text string) {
	t.Helper()
	r, err := i.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, ch := range r.Changes {
		if ch.Kind != importer.Same && ch.Kind != importer.Conflict {
			t.Errorf("the second import changes %s", ch)
		}
	}
	if err := r.Write(nil); err != nil {
		t.Fatal(err)
	}
	if now := fixture.ReadFile(t, i.Output); now != text {
		t.Errorf("the second import has changed the file:\n%s", now)
	}
}

// TestOperatorsFile: an import into a file of the operator keeps what is there, and follows
// the source in nodes only.
func TestOperatorsFile(t *testing.T) {
	output := filepath.Join(t.TempDir(), "drover.yaml")
	const mine = `# My farm.
server: {interfaces: [eth1], address: 10.93.0.2}
subnets: [{cidr: 10.93.0.0/24, router: 10.93.0.1}]
tags:
  web: {kernelArgs: quiet} # mine
pools:
  - name: front
    image: debian-13
    nodes:
      - {name: m1, macs: ["02:00:00:00:93:01"], ip: 10.93.0.11, tags: [web], dhcpOptions: {ntp-server: 10.93.0.9}}
      - {name: other, macs: ["02:00:00:00:93:77"], ip: 10.93.0.77}
`
	if err := os.WriteFile(output, []byte(mine), 0o640); err != nil {
		t.Fatal(err)
	}
	table := filepath.Join(t.TempDir(), "t.csv")
	const rows = "name,mac,ip,tags\nm1,02:00:00:00:93:01 02:00:00:00:93:02,10.93.0.12,web\nm2,02:00:00:00:93:03,10.93.0.13,\nm3,02:00:00:00:93:77,10.93.0.14,\n"
	if err := os.WriteFile(table, []byte(rows), 0o600); err != nil {
		t.Fatal(err)
	}
	i := migrate.Import{Output: output, Read: func(f *migrate.Farm) error { return inventory.Read(f, []string{table}) }}
	r, err := i.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.Conflicts != 1 {
		t.Errorf("%d conflicts, want the one of m3", r.Conflicts)
	}
	if err := r.Write(&bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	text := fixture.ReadFile(t, output)
	fixture.WantText(t, "the file", text, "# My farm.", "kernelArgs: quiet} # mine", "image: debian-13", "interfaces: [eth1]", "ntp-server",
		`"02:00:00:00:93:02"`, "ip: 10.93.0.12", "name: m2", "10.93.0.77")
	fixture.WantNoText(t, "the file", text, "m3", "[10.93.0.9]")
	if info, err := os.Stat(output); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the file has mode %v, %v", info.Mode(), err)
	}
	again(t, i, text)
}

// TestNotTheFormat: a file of another kind is an error of its own.
func TestNotTheFormat(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x")
	for _, text := range []string{"", "hello\n", "{]", "a: [b\n", "{\"a\": 1}", "\x00\x01", "name,colour\nx,y\n", "a\n\"b", strings.Repeat("[", 20000), "a: &a [*a]\n", "}"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, tt := range formats {
			if err := tt.read(migrate.NewFarm(migrate.Options{}), []string{file}); err == nil {
				t.Errorf("%s: %.20q is read without an error", tt.name, text)
			}
		}
	}
}
