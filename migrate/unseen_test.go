package migrate_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"drover/e2e/fixture"
	"drover/e2e/importtest"
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

// TestUnseen imports configs as people have them, with what manuals do not recommend: in each
// file of testdata/unseen ten of one format. It compares reports and configs with
// FORMAT.golden; drover check finds no mistake that the report has not.
func TestUnseen(t *testing.T) {
	folder := func(f *migrate.Farm, files []string) error {
		return matchbox.Read(f, []string{filepath.Dir(filepath.Dir(files[0]))})
	}
	for name, read := range map[string]func(*migrate.Farm, []string) error{
		"dnsmasq": conf, "dnsmasq-controller": dnsmasq.ReadObjects, "isc-dhcpd": dhcpd.Read, "kea": kea.Read, "matchbox": folder,
		"warewulf": warewulf.Read, "csv": inventory.Read, "kubefarm": kubefarm.Read,
	} {
		t.Run(name, func(t *testing.T) {
			golden, err := filepath.Abs(filepath.Join("testdata/unseen", name+".golden"))
			if err != nil {
				t.Fatal(err)
			}
			archive, err := txtar.ParseFile(strings.TrimSuffix(golden, "golden") + "txtar")
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			t.Chdir(t.TempDir())
			for _, c := range unpack(t, archive) {
				fmt.Fprintf(&got, "-- %s --\n%s", c[0], outcome(t, read, c[1:]))
			}
			fixture.Golden(t, golden, got.Bytes())
		})
	}
}

// unpack writes the files of an archive, and returns those of each case: the first folder of a
// name, or the name. The first item of each is the case.
func unpack(t *testing.T, a *txtar.Archive) (cases [][]string) {
	t.Helper()
	files := map[string][]string{}
	for _, f := range a.Files {
		name, _, _ := strings.Cut(f.Name, "/")
		if name == f.Name {
			f.Name += "/input"
		}
		if err := os.MkdirAll(filepath.Dir(f.Name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f.Name, f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
		files[name] = append(files[name], f.Name)
	}
	if len(files) < 10 {
		t.Errorf("%d cases", len(files))
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		cases = append(cases, append([]string{name}, files[name]...))
	}
	return cases
}

// outcome returns the report of an import and the config that it makes, or its error.
func outcome(t *testing.T, read func(*migrate.Farm, []string) error, files []string) string {
	t.Helper()
	i := migrate.Import{Command: "drover import", Options: migrate.Options{Interfaces: []string{"eth1"}},
		Read: func(f *migrate.Farm) error { return read(f, files) }}
	r, err := i.Run(t.Context())
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	text := importtest.Report(r)
	if _, err := config.Parse("drover.yaml", r.Config()); err != nil && !strings.Contains(text, "the result has a mistake") {
		t.Errorf("%s: mistakes that the report has not:\n%v", files[0], err)
	}
	for line := range strings.Lines(string(r.Config())) {
		if !strings.HasPrefix(line, "#") { // the head is the report again
			text += line
		}
	}
	return text
}
