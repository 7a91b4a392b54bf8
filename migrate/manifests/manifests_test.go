package manifests_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/hardware/importer"
	"drover/migrate/manifests"
)

const conf = `# Made by: drover import csv
# Lines marked CHANGE need your decision.

server:
  # CHANGE: the network cards that nodes boot from (--interface).
  interfaces: [eth1]
  address: 10.93.0.2
subnets:
  - {cidr: 10.93.0.0/24, router: 10.93.0.1}
tags:
  web: {kernelArgs: quiet}
pools:
  - name: front
    image: debian-13
    nodes:
      - {name: m1, macs: ["02:00:00:00:93:01"], ip: 10.93.0.11, tags: [web]}
      - {name: m2, macs: ["02:00:00:00:93:02"], ip: 10.93.0.12}
`

// summary returns the changes, one in a word.
func summary(r *manifests.Result) string {
	var all []string
	for _, c := range r.Changes {
		all = append(all, c.Kind.Mark()+c.Part+":"+c.Name)
	}
	return strings.Join(all, " ")
}

// convert converts into a file that may be there, and returns what it would become.
func convert(t *testing.T, conf, file string) *manifests.Result {
	t.Helper()
	r, err := manifests.Convert([]byte(conf), "drover", file)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestConvert: each element is an object in the namespace; what drover needs to start with is a
// comment, and no line of it is an object.
func TestConvert(t *testing.T) {
	r := convert(t, conf, filepath.Join(t.TempDir(), "none.yaml"))
	if !r.Changed() || len(r.Left) > 0 {
		t.Errorf("changes %q, left %v", summary(r), r.Left)
	}
	text := string(r.Text)
	fixture.WantText(t, "the file", text, "# Made by: drover import csv", "# server:", "#   interfaces: [eth1]", "#   address: 10.93.0.2", "name: m1", "name: m2", "name: front", "namespace: drover", "kind: Machine")
	for line := range strings.Lines(text) {
		if strings.Contains(line, "interfaces") && !strings.HasPrefix(line, "#") {
			t.Errorf("the section server is no comment: %s", line)
		}
	}
	if got := strings.Count(text, "\nkind: "); got != len(r.Changes) {
		t.Errorf("%d objects, %d changes", got, len(r.Changes))
	}
}

// TestOlderFile: of a file that is there machines follow, the others stay, and what is not in the
// config is kept. A second conversion changes nothing.
func TestOlderFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "objects.yaml")
	write := func(text []byte) {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(convert(t, strings.Replace(conf, "\n      - {name: m2", "\n      - {name: m9, macs: [\"02:00:00:00:93:09\"], ip: 10.93.0.19}\n      - {name: m2", 1), "").Text)
	r := convert(t, strings.NewReplacer("10.93.0.11", "10.93.0.111", "debian-13", "debian-14").Replace(conf), file)
	for _, c := range r.Changes {
		want := importer.Same
		if c.Name == "m1" {
			want = importer.Changed
		}
		if c.Kind != want || (c.Text != "") != (c.Name == "front") {
			t.Errorf("%s: kind %s, text %q, want %s", c.Name, c.Kind, c.Text, want)
		}
	}
	fixture.WantText(t, "the file", string(r.Text), "10.93.0.111", "debian-13", "name: m9")
	fixture.WantNoText(t, "the file", string(r.Text), "debian-14")
	write(r.Text)
	again := convert(t, strings.NewReplacer("10.93.0.11", "10.93.0.111").Replace(conf), file)
	if again.Changed() || string(again.Text) != string(r.Text) {
		t.Errorf("a second conversion changes %q", summary(again))
	}
}

// TestRefused: a file that is not one of objects is not replaced, and no config is no file.
func TestRefused(t *testing.T) {
	for name, tt := range map[string]struct{ conf, file, want string }{
		"unknown key":     {"colour: red\n", "", "colour"},
		"no YAML":         {"pools: [", "", "the config"},
		"deep":            {strings.Repeat("[", 20_000), "", "the config"},
		"wrong type":      {"pools: {a: b}\n", "", "pools"},
		"file of another": {conf, "hello: world\n", "give another --output"},
		"file cut short":  {conf, "kind: [", "give another --output"},
		"file of a list":  {conf, "[]\n", "give another --output"},
	} {
		file := ""
		if tt.file != "" {
			file = filepath.Join(fixture.Tree(t, map[string]string{"objects.yaml": tt.file}), "objects.yaml")
		}
		r, err := manifests.Convert([]byte(tt.conf), "drover", file)
		if err == nil || !strings.Contains(err.Error(), tt.want) || r != nil {
			t.Errorf("%s: got %v, error %v, want one with %q", name, r, err, tt.want)
		}
	}
	for _, file := range []string{"/dev/zero", t.TempDir()} {
		if _, err := manifests.Convert([]byte(conf), "drover", file); err == nil {
			t.Errorf("%s was read", file)
		}
	}
}
