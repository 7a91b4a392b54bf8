package matchbox_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/e2e/importtest"
	"drover/migrate"
	"drover/migrate/matchbox"
)

const profile = `{"id": "worker", "boot": {"kernel": "/k"}}`

// folder imports a data directory of Matchbox, and returns the config and the report.
func folder(t *testing.T, files map[string]string, options migrate.Options) (conf, report string, err error) {
	t.Helper()
	dir := fixture.Tree(t, files)
	i := migrate.Import{Options: options, Read: func(f *migrate.Farm) error { return matchbox.Read(f, []string{dir}) }}
	r, err := i.Run(t.Context())
	if err != nil {
		return "", "", err
	}
	for line := range strings.Lines(string(r.Config())) {
		if !strings.HasPrefix(line, "#") { // the head is the report again
			conf += line
		}
	}
	return conf, strings.ReplaceAll(importtest.Report(r), dir+"/", ""), nil
}

// TestSelectors: which group becomes a node, which a pool for all machines, and which neither.
func TestSelectors(t *testing.T) {
	for _, tt := range []struct {
		name, group string
		config      []string // in the config
		not         []string // not in it
		report      string
	}{
		{"a MAC", `{"id": "n1", "profile": "worker", "selector": {"mac": "02:00:00:00:90:01"}}`, []string{"name: n1", `"02:00:00:00:90:01"`, "name: worker"}, []string{"catchall"}, "node n1"},
		{"a MAC in another form", `{"id": "n1", "profile": "worker", "selector": {"mac": "02-00-00-00-90-0A"}}`, []string{`"02:00:00:00:90:0a"`}, nil, ""},
		{"a UUID", `{"id": "n1", "profile": "worker", "selector": {"uuid": "4C4C4544-0034-4210-8035-B4C04F4D3132"}}`, []string{"uuid: 4c4c4544-0034-4210-8035-b4c04f4d3132"}, []string{"catchall"}, ""},
		{"a name beside", `{"id": "n1", "profile": "worker", "selector": {"mac": "02:00:00:00:90:01", "hostname": "web-1"}}`, []string{"name: web-1"}, nil, "selector hostname beside the MAC"},
		{"all machines", `{"id": "all", "profile": "worker"}`, []string{"catchall: true"}, nil, "for all machines that no other group has"},
		{"no selector in it", `{"id": "all", "profile": "worker", "selector": {}}`, []string{"catchall: true"}, nil, ""},
		{"only some machines", `{"id": "some", "profile": "worker", "selector": {"os": "installed"}}`, nil, []string{"catchall", "some"}, "selector os: drover knows a machine by its MAC or its UUID"},
		{"nonsense", `{"id": "n1", "profile": "worker", "selector": {"mac": "nonsense"}}`, nil, []string{"catchall", "nonsense"}, "nonsense"},
		{"an empty MAC", `{"id": "n1", "profile": "worker", "selector": {"mac": ""}}`, nil, []string{"catchall"}, "selector mac"},
		{"MACs", `{"id": "n1", "profile": "worker", "selector": {"mac": ["02:00:00:00:90:01"]}}`, nil, []string{"catchall"}, "selector mac"},
		{"a text", `{"id": "n1", "profile": "worker", "selector": "mac"}`, nil, []string{"catchall"}, "selector of another form"},
		{"no such profile", `{"id": "n1", "profile": "x", "selector": {"mac": "02:00:00:00:90:01"}}`, []string{"name: x"}, nil, `profile "x" is not among the files`},
	} {
		conf, report, err := folder(t, map[string]string{"groups/g.json": tt.group, "profiles/worker.json": profile}, migrate.Options{})
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		fixture.WantText(t, tt.name, conf, append(tt.config, "dhcp: proxy")...)
		fixture.WantNoText(t, tt.name, conf, tt.not...)
		fixture.WantText(t, tt.name, report, tt.report)
	}
}

// TestInstalled: of the two groups of one MAC the one that has it alone is the node.
func TestInstalled(t *testing.T) {
	conf, report, err := folder(t, map[string]string{
		"profiles/worker.json": profile, "profiles/install.json": `{"id": "install", "boot": {}}`,
		"groups/a.json": `{"id": "a", "profile": "install", "selector": {"mac": "02:00:00:00:90:01", "os": "none"}}`,
		"groups/b.json": `{"id": "b", "profile": "worker", "selector": {"mac": "02:00:00:00:90:01"}}`,
	}, migrate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	fixture.WantText(t, "the config", conf, "name: b", "name: worker")
	fixture.WantNoText(t, "the config", conf, "name: a\n", "name: a,")
	fixture.WantText(t, "the report", report, "groups/a.json:1: left out", "beside a MAC that another group has")
}

// TestFullServer: where drover gives the addresses, a pool for all machines has no range, and so
// is not opened.
func TestFullServer(t *testing.T) {
	conf, report, err := folder(t, map[string]string{"groups/g.json": `{"id": "all", "profile": "worker"}`, "profiles/worker.json": profile}, migrate.Options{DHCP: "full"})
	if err != nil {
		t.Fatal(err)
	}
	fixture.WantNoText(t, "the config", conf, "catchall: true")
	fixture.WantText(t, "the report", report, "the catch-all pool has no range")
}

// TestFiles: which files of a directory are read, and what is none of Matchbox.
func TestFiles(t *testing.T) {
	group := `{"id": "n1", "profile": "worker", "selector": {"mac": "02:00:00:00:90:01"}}`
	for name, tt := range map[string]struct {
		files map[string]string
		want  string // in the error
	}{
		"other files are left alone": {map[string]string{"groups/g.json": group, "groups/README.md": "[", "assets/x.json": "[", "x.json": "["}, ""},
		"nothing":                    {map[string]string{"groups/README.md": ""}, "no group and no profile"},
		"another document":           {map[string]string{"groups/g.json": `{"a": 1}`}, "neither a group"},
		"a list":                     {map[string]string{"groups/g.json": "[]"}, "not one JSON object"},
		"cut short":                  {map[string]string{"groups/g.json": group[:40]}, "g.json"},
		"deep":                       {map[string]string{"groups/g.json": `{"selector": ` + strings.Repeat("[", 50_000)}, "g.json"},
		"a link to nowhere":          {map[string]string{"groups/g.json": "->nowhere"}, "g.json"},
		"an endless device":          {map[string]string{"groups/g.json": "->/dev/zero"}, "g.json"},
	} {
		_, _, err := folder(t, tt.files, migrate.Options{})
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: got error %v, want %q", name, err, tt.want)
		}
	}
	dir := fixture.Tree(t, map[string]string{"[a]*?/groups/g.json": group, "a/groups/g.json": "["})
	if err := matchbox.Read(migrate.NewFarm(migrate.Options{}), []string{filepath.Join(dir, "[a]*?")}); err != nil {
		t.Errorf("a directory whose name is a pattern: %v", err)
	}
}

func TestHostile(t *testing.T) {
	importtest.Refused(t, matchbox.Read)
	for _, text := range []string{
		`{"id": "n1", "name": "n", "profile": "worker", "metadata": {"a": ["b"]}, "selector": {"mac": "02:00:00:00:90:01", "os": "x"}}`,
		`{"id": "n1", "profile": "worker", "selector": {"uuid": "4c4c4544-0034-4210-8035-b4c04f4d3132"}}`,
		`{"id": "some", "profile": "worker", "selector": {"os": "installed"}}`,
		profile,
	} {
		importtest.Damage(t, matchbox.Read, text)
	}
	groups := map[string]string{"profiles/worker.json": profile}
	for i := range 2000 {
		groups[fmt.Sprintf("groups/%d.json", i)] = fmt.Sprintf(`{"profile": "worker", "selector": {"mac": "02:00:00:00:%02x:%02x"}}`, i>>8, i&255)
	}
	conf, _, err := folder(t, groups, migrate.Options{})
	if got := strings.Count(conf, "02:00:00:00:"); err != nil || got != 2000 {
		t.Errorf("2000 machines: got %d, %v", got, err)
	}
}
