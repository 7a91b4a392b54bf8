package migrate_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
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
	"drover/migrate/warewulf"
	"drover/pools"
)

// leavesOf returns the leaves of an input: the values of a tree, the cells of a table, or the
// lines of other files. Their places are those that a note has.
func leavesOf(t *testing.T, file string, table bool) (all []migrate.Note) {
	t.Helper()
	text := fixture.ReadFile(t, file)
	add := func(at pools.Origin, text string) {
		if text = strings.TrimSpace(text); text != "" && text != "{}" && text != "[]" {
			all = append(all, migrate.Note{Origin: at, Text: text})
		}
	}
	if documents, err := migrate.ParseYAML(file, []byte(text)); err == nil && len(documents) > 0 && documents[0].IsMap() {
		for _, doc := range documents {
			doc.Leaves(func(v *migrate.Value) { add(v.Origin, v.Text) })
		}
		return all
	}
	if v, err := migrate.ParseJSON(file, []byte(text)); err == nil {
		v.Leaves(func(v *migrate.Value) { add(v.Origin, v.Text) })
		return all
	}
	if table {
		var header []string
		row := func(at pools.Origin, row []string) {
			for n, cell := range row {
				at.Path = strings.TrimSpace(header[min(n, len(header)-1)])
				add(at, cell)
			}
		}
		if err := inventory.Table(file, []byte(text), func(at pools.Origin, names []string) error { header = names; row(at, names); return nil }, row); err != nil {
			t.Fatal(err)
		}
		return all
	}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line, _, _ = strings.Cut(line, "#")
		add(pools.Origin{File: file, Line: n}, line)
	}
	return all
}

// plain writes MACs in one form, and without the marks around words.
func plain(text string) string {
	dashed := regexp.MustCompile(`([0-9a-f]{1,2}[:-]){5}[0-9a-f]{1,2}`)
	return dashed.ReplaceAllStringFunc(strings.ToLower(text), func(mac string) string {
		if m, err := migrate.ParseHardware(mac); err == nil {
			return m.String()
		}
		return mac
	})
}

// zeros are the bytes that lack a leading zero, and the colons.
var zeros = regexp.MustCompile(`:?\b([0-9a-f])\b:?`)

// isIn reports whether a leaf is in the result or in the report.
func isIn(leaf migrate.Note, r *migrate.Result, config string, table map[string]migrate.Kind) bool {
	for _, n := range r.Notes {
		path, _, _ := strings.Cut(n.Path, " (")
		tree := strings.ContainsAny(leaf.Path, ".[")
		switch {
		case n.File != leaf.File:
		case leaf.Path != "" && path == leaf.Path && (tree || n.Line == leaf.Line):
			return true
		case tree && (path == "" || strings.HasPrefix(leaf.Path, path+".") || strings.HasPrefix(leaf.Path, path+"[")):
			return true
		case !tree && n.Line == leaf.Line:
			return true
		}
	}
	if kind := table[leaf.Path]; kind != "" && kind != migrate.Taken {
		return true // the header has the note of the column
	}
	if regexp.MustCompile(`^([{}; ]*|null|255\.[0-9.]*)$`).MatchString(leaf.Text) || regexp.MustCompile(`(^|\.)(apiVersion|kind|metadata\..*)$`).MatchString(leaf.Path) {
		return true // a brace, a mask, the head of an object
	}
	if strings.HasSuffix(leaf.Text, "{") { // a block: what is in it has its own lines
		for _, n := range r.Notes {
			config += strings.ToLower(n.Text)
		}
	}
	for _, w := range strings.FieldsFunc(plain(leaf.Text), func(r rune) bool { return strings.ContainsRune(" ,;{}\"()", r) }) {
		name, _, _ := strings.Cut(w, ".")
		w = strings.TrimPrefix(w, "dhcp-host=")
		if mac, err := migrate.ParseHardware(w); err == nil {
			w = mac.String()
		}
		if u, err := url.Parse(w); err == nil && u.Host != "" {
			w = u.Host
		}
		w = strings.Trim(regexp.MustCompile(`^(set|tag|net|id):`).ReplaceAllString(w, ""), "[].~'")
		if slices.Contains([]string{"dhcp-host", "dhcp-range", "host", "hardware", "ethernet", "fixed-address", "group", "gpu", "subnet", "netmask", "option", "=", "class", "shared-network", "host-identifier", "agent.circuit-id", "agent.remote-id", "infinite", "ignore"}, strings.Split(w, "=")[0]) && !strings.Contains(w, "=") {
			continue
		}
		address, _, _ := strings.Cut(w, "/")
		if !strings.Contains(config, w) && !strings.Contains(config, name) && !strings.Contains(config, address) && !strings.Contains(config, strings.ReplaceAll(w, ":", "")) && !strings.Contains(config, zeros.ReplaceAllString(w, "0$1")) {
			return false
		}
	}
	return true
}

// TestEveryLeaf: every leaf of every example is in the config that is written, or in the report;
// and what the report calls taken is in the config.
func TestEveryLeaf(t *testing.T) {
	for _, tt := range formats {
		t.Run(tt.name, func(t *testing.T) {
			t.Chdir(filepath.Join("testdata", tt.name))
			everyLeaf(t, tt.read, tt.files)
		})
	}
	for name, read := range map[string]func(*migrate.Farm, []string) error{
		"dnsmasq": conf, "dnsmasq-controller": dnsmasq.ReadObjects, "isc-dhcpd": dhcpd.Read, "kea": kea.Read, "warewulf": warewulf.Read, "csv": inventory.Read, "kubefarm": kubefarm.Read,
	} {
		archive, err := txtar.ParseFile(filepath.Join("testdata/unseen", name+".txtar"))
		if err != nil {
			t.Fatal(err)
		}
		dir, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		t.Run("unseen-"+name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			for _, c := range unpack(t, archive) {
				everyLeaf(t, read, c[1:])
			}
		})
		t.Chdir(dir)
	}
}

func everyLeaf(t *testing.T, read func(*migrate.Farm, []string) error, files []string) {
	t.Helper()
	i := migrate.Import{Options: migrate.Options{Interfaces: []string{"eth9"}}, Read: func(f *migrate.Farm) error { return read(f, files) }}
	r, err := i.Run(t.Context())
	if err != nil {
		return // no config of this format
	}
	var text strings.Builder
	for line := range strings.Lines(string(r.Config())) {
		if !strings.HasPrefix(line, "#") {
			text.WriteString(strings.ToLower(line))
		}
	}
	config := text.String()
	for _, n := range r.Notes {
		_, values, ok := strings.Cut(strings.Split(n.Text, ";")[0], ": ")
		for v := range strings.SplitSeq(values, ", ") {
			if n.Kind == migrate.Taken && ok && !strings.Contains(n.Text, "dhcpOptions") && !strings.Contains(config, strings.ToLower(v)) {
				t.Errorf("%s: %q is not in the config\n%s", n, v, config)
			}
		}
	}
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || info.IsDir() {
			continue
		}
		table := map[string]migrate.Kind{}
		for _, n := range r.Notes {
			if n.File == file && n.Line == 1 {
				table[n.Path] = n.Kind
			}
		}
		for _, leaf := range leavesOf(t, file, strings.Contains(t.Name(), "csv")) {
			if !isIn(leaf, r, config, table) {
				t.Errorf("%s:%d: %s: %q is neither in the config nor in the report", leaf.File, leaf.Line, leaf.Path, leaf.Text)
			}
		}
	}
}

// TestTakenIsVerified: a note that an option is taken is one only if the config has the value.
func TestTakenIsVerified(t *testing.T) {
	at := func(line int) pools.Origin {
		return pools.Origin{File: "x", Line: line, Path: fmt.Sprintf("a[%d]", line)}
	}
	i := migrate.Import{Read: func(f *migrate.Farm) error {
		_, tag := f.Tag("red")
		tag.Labels = map[string]string{"role": "web"}
		f.Taken(at(1), "tags.red.labels.role", "web")
		f.Taken(at(2), "tags.red.labels.role", "db")
		f.Taken(at(3), "tags.blue.labels.role", "web")
		f.Taken(at(4), "tags.red.labels; a remark", "web")
		f.Source(at(5), "web")
		f.Source(at(6), "secret-word")
		lost := &migrate.Scope{Name: "class x"}
		f.Set(lost, migrate.Option{At: at(7), Code: 42, Values: []string{"10.0.0.1"}})
		f.Set(&f.Global, migrate.Option{At: at(8), Code: 42, Values: []string{"10.0.0.1"}})
		return nil
	}}
	r, err := i.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[int]migrate.Kind{}
	for _, n := range r.Notes {
		kinds[n.Line] = n.Kind
		fixture.WantNoText(t, "a note", n.String(), "secret-word")
	}
	want := map[int]migrate.Kind{1: migrate.Taken, 2: migrate.NotTaken, 3: migrate.NotTaken, 4: migrate.Taken, 6: migrate.NotTaken, 7: migrate.NotTaken, 8: migrate.Taken}
	for line := 1; line <= 8; line++ {
		if kinds[line] != want[line] {
			t.Errorf("%d: %q, want %q\n%s", line, kinds[line], want[line], importtest.Report(r))
		}
	}
}

// TestDerivedOptions: a mask and a broadcast address follow from the network, if they are its own.
func TestDerivedOptions(t *testing.T) {
	r, _ := importtest.Text(t, conf, dnsmasqHead+`dhcp-option=28,10.28.0.255
dhcp-option=28,10.28.255.255
dhcp-option=option:netmask,255.255.255.0
dhcp-option=option:netmask,255.255.0.0
dhcp-option=option:T1,900
`)
	for line, want := range map[int]migrate.Kind{3: migrate.Itself, 4: migrate.NotTaken, 5: migrate.Itself, 6: migrate.NotTaken, 7: migrate.NotTaken} {
		if !slices.ContainsFunc(r.Notes, func(n migrate.Note) bool { return n.Line == line && n.Kind == want }) {
			t.Errorf("line %d is not %q\n%s", line, want, importtest.Report(r))
		}
	}
}
