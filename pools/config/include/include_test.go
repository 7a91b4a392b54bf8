package include_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/pools/config"
	"drover/pools/config/include"
	"drover/pools/resolve"
)

const (
	head = "server: {interfaces: [nic7]}\nsubnets: [{cidr: 10.28.0.0/16}]\ntags: {quiet: {kernelArgs: quiet}}\n"
	web  = "pools:\n  - name: web\n    image: debian-12\n    nodes:\n      - {name: m1, macs: [\"52:54:00:00:00:01\"], ip: 10.28.0.1}\n"
	tags = "tags:\n  fast: {kernelArgs: fast}\n"
)

// load returns the nodes of a config with their places, or the error.
func load(dir string) string {
	farm, err := config.Load(filepath.Join(dir, "drover.yaml"))
	if err != nil {
		return strings.ReplaceAll(err.Error(), dir+"/", "")
	}
	var all []string
	for _, n := range farm.Nodes() {
		all = append(all, n.Name+" in "+strings.TrimPrefix(n.Source.Position(), dir+"/"))
	}
	return strings.Join(all, ", ")
}

// TestInclude: the files are one config, in the order of patterns and names.
func TestInclude(t *testing.T) {
	outside := fixture.Tree(t, map[string]string{"z.yaml": strings.NewReplacer("web", "z", "m1", "mz", ":01", ":0f", "0.1}", "0.15}").Replace(web)})
	dir := fixture.Tree(t, map[string]string{
		"drover.yaml":       "include: [one.yaml, 'conf.d/*.yaml', " + outside + "/*.yaml, '*.yaml']\n" + head,
		"one.yaml":          tags,
		"conf.d/20.yaml":    web + "    tags: [quiet, fast]\n",
		"conf.d/10.yaml":    strings.NewReplacer("web", "db", "m1", "m2", ":01", ":02", "0.1}", "0.2}").Replace("# first\n" + web),
		"conf.d/.#20.yaml":  "->nowhere",
		"conf.d/.hid.yaml":  "nonsense",
		"conf.d/30.yaml":    "# nothing yet\n",
		"conf.d/40.yaml":    "->../kept/40",
		"kept/40":           "subnets: [{cidr: 10.29.0.0/16}]\n",
		"conf.d/other.text": "nonsense",
	})
	if got, want := load(dir), "m2 in conf.d/10.yaml:6, m1 in conf.d/20.yaml:5, mz in "+outside+"/z.yaml:5"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	farm, err := config.Load(dir + "/drover.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p := farm.Resolve(resolve.Query{MAC: [6]byte{0x52, 0x54, 0, 0, 0, 1}})
	if got := strings.Join(p.KernelArgs, " "); got != "quiet fast" || len(farm.Config.Subnets) != 2 {
		t.Errorf("got kernel arguments %q, subnets %v", got, farm.Config.Subnets)
	}
	if got := strings.TrimPrefix(p.Why()["image"].Position(), dir+"/"); got != "conf.d/20.yaml:3" {
		t.Errorf("the image is from %s", got)
	}
}

// TestBadIncludes: each mistake has its file and line, and a remedy.
func TestBadIncludes(t *testing.T) {
	many := map[string]string{}
	for i := range 257 {
		many[fmt.Sprintf("conf.d/%03d.yaml", i)] = "# nothing\n"
	}
	large := strings.Repeat("# 16 bytes here\n", 1<<18)
	for name, tt := range map[string]struct {
		include, want string
		files         map[string]string
	}{
		"unknown key":      {"conf.d/*.yaml", `conf.d/a.yaml:1: unknown key "pool" (did you mean "pools"?)`, map[string]string{"conf.d/a.yaml": "pool: []\n"}},
		"server":           {"conf.d/*.yaml", "conf.d/a.yaml:2: server: an included file cannot set it (move it to ", map[string]string{"conf.d/a.yaml": "tags: {}\nserver: {api: \":1\"}\n"}},
		"nesting":          {"conf.d/*.yaml", "conf.d/a.yaml:1: include: an included file cannot include others", map[string]string{"conf.d/a.yaml": "include: drover.yaml\n"}},
		"tag twice":        {"conf.d/*.yaml", `conf.d/a.yaml:2: tag "quiet" is there twice, first in drover.yaml:4 (rename or remove one)`, map[string]string{"conf.d/a.yaml": "tags:\n  quiet: {}\n"}},
		"pool twice":       {"conf.d/*.yaml", `conf.d/b.yaml:2: pool "web" is there twice, first in conf.d/a.yaml:2`, map[string]string{"conf.d/a.yaml": web, "conf.d/b.yaml": "pools:\n  - {name: web, image: i}\n"}},
		"MAC twice":        {"conf.d/*.yaml", `conf.d/b.yaml:5: node "m2": MAC 52:54:00:00:00:01 is already that of node "m1" in conf.d/a.yaml:5`, map[string]string{"conf.d/a.yaml": web, "conf.d/b.yaml": strings.NewReplacer("web", "db", "m1", "m2", "0.1}", "0.2}").Replace(web)}},
		"no YAML":          {"conf.d/*.yaml", "conf.d/a.yaml:1: not YAML", map[string]string{"conf.d/a.yaml": "{"}},
		"a list":           {"conf.d/*.yaml", "conf.d/a.yaml:1: the config: want keys with values, not a list", map[string]string{"conf.d/a.yaml": "- a\n"}},
		"missing file":     {"conf.d/a.yaml", "drover.yaml:1: include: conf.d/a.yaml: no such file or directory (mend or remove it)", nil},
		"missing folder":   {"conf.d/*.yaml", "drover.yaml:1: include: conf.d: no such file or directory (make the directory, or remove the pattern)", nil},
		"a folder":         {"conf.d", "drover.yaml:1: include: conf.d: not a regular file", map[string]string{"conf.d/a.yaml": ""}},
		"a way out":        {"../x.yaml", `drover.yaml:1: include: "../x.yaml" is not in the directory of the config file or below it`, nil},
		"a link out":       {"conf.d/*.yaml", "drover.yaml:1: include: conf.d/a.yaml: path escapes from parent", map[string]string{"conf.d/a.yaml": "->/etc/passwd"}},
		"a folder out":     {"conf.d/*.yaml", "path escapes from parent", map[string]string{"conf.d": "->/etc"}},
		"folder pattern":   {"*/a.yaml", "only the name of the file may be a pattern", nil},
		"bad pattern":      {"a[", "syntax error in pattern", nil},
		"not clean":        {"conf.d//a.yaml", `"conf.d//a.yaml" is not a clean path of a file`, nil},
		"empty":            {`""`, `drover.yaml:1: include: "" is not a clean path of a file`, nil},
		"many files":       {"conf.d/*.yaml", "drover.yaml:1: include: more than 256 files (put several into one)", many},
		"large":            {"conf.d/*.yaml", "drover.yaml:1: include: conf.d/a.yaml: with it the config has more than 4194304 bytes", map[string]string{"conf.d/a.yaml": large[:4<<20]}},
		"two large ones":   {"conf.d/*.yaml", "include: conf.d/b.yaml: with it the config has more than", map[string]string{"conf.d/a.yaml": large[:3<<20], "conf.d/b.yaml": large[:2<<20]}},
		"many values":      {"conf.d/*.yaml", "commas and lines, more than 524288", map[string]string{"conf.d/a.yaml": "#" + strings.Repeat(",", 300_000), "conf.d/b.yaml": "#" + strings.Repeat(",", 300_000)}},
		"one of two names": {"[a.yaml, b.yaml]", "drover.yaml:1: include: b.yaml: no such file", map[string]string{"a.yaml": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"drover.yaml": "include: " + quoted(tt.include) + "\n" + head}
			maps.Copy(files, tt.files)
			fixture.WantText(t, "check", load(fixture.Tree(t, files)), tt.want)
		})
	}
}

// quoted quotes what YAML would take for something else.
func quoted(pattern string) string {
	if strings.HasPrefix(pattern, "*") || strings.HasSuffix(pattern, "[") {
		return `"` + pattern + `"`
	}
	return pattern
}

// TestIncludedFIFO: what is no file is refused, and nobody waits for it.
func TestIncludedFIFO(t *testing.T) {
	dir := fixture.Tree(t, map[string]string{"drover.yaml": "include: conf.d/*\n" + head, "conf.d/a": ""})
	if err := syscall.Mkfifo(dir+"/conf.d/b", 0o600); err != nil {
		t.Fatal(err)
	}
	fixture.WantText(t, "check", load(dir), "drover.yaml:1: include: conf.d/b: not a regular file")
}

// TestParseReadsNoFile: a config that is not on the disk cannot read files.
func TestParseReadsNoFile(t *testing.T) {
	_, err := config.Parse("drover.yaml", []byte("include: /etc/passwd\n"+head+web))
	fixture.WantText(t, "parse", fmt.Sprint(err), "drover.yaml:1: include: no files are read here")
}

// TestCopy: a copy has the whole text, and is read without any file.
func TestCopy(t *testing.T) {
	dir := fixture.Tree(t, map[string]string{"drover.yaml": "include: conf.d/*.yaml\n" + head, "conf.d/a.yaml": web, "conf.d/b.yaml": tags})
	file := dir + "/drover.yaml"
	text, err := include.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if errs := text.Decode(new(resolve.Checked)); len(errs) > 0 {
		t.Fatal(errs)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	copied, err := include.OfCopy(file, text.Copy())
	if err != nil || copied == nil || copied.Digest() != text.Digest() || string(copied.Main) != string(text.Main) || !slices.Equal(copied.Included, text.Included) {
		t.Fatalf("got %+v, %v", copied, err)
	}
	if farm, err := config.ParseText(copied); err != nil || len(farm.Nodes()) != 1 {
		t.Errorf("got %v", err)
	}
	if other, err := include.OfCopy(dir+"/other.yaml", text.Copy()); other != nil || err != nil {
		t.Errorf("for another file: %v, %v", other, err)
	}
	for _, damaged := range []string{string(text.Copy()[:len(text.Copy())-len(tags)-len(web)-len(text.Main)]), strings.Replace(string(text.Copy()), " with [", " with {", 1), strings.Replace(string(text.Copy()), `"bytes":`, `"bytes":-`, 1)} {
		if c, err := include.OfCopy(file, []byte(damaged)); err == nil {
			t.Errorf("damaged: got %+v", c)
		}
	}
	// A copy of one file has the form of before.
	one := &include.Text{File: file, Main: []byte(head + web)}
	if got := string(one.Copy()); got != fmt.Sprintf("# The last content in force, kept by drover serve, of %q\n%s", file, head+web) {
		t.Errorf("got %s", got)
	}
	if c, err := include.OfCopy(file, one.Copy()); err != nil || string(c.Main) != head+web {
		t.Errorf("got %+v, %v", c, err)
	}
}

// TestWatch: a file that changes, comes or goes is noticed, whether the config is good or not.
func TestWatch(t *testing.T) {
	dir := fixture.Tree(t, map[string]string{"drover.yaml": "include: [conf.d/*.yaml, more/x.yaml]\n" + head, "conf.d/a.yaml": web, "kept/b.yaml": tags})
	live := func() *include.Watch {
		text, err := include.Read(dir + "/drover.yaml")
		if err == nil {
			_ = text.Decode(new(resolve.Checked))
		}
		return text.Watch()
	}
	write := func(name, content string) error {
		return os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600)
	}
	for _, step := range []struct {
		what string
		do   func() error
		want bool
	}{
		{"nothing", func() error { return nil }, false},
		{"a change", func() error { return write("conf.d/a.yaml", web+"# more\n") }, true},
		{"a file of another name", func() error { return write("conf.d/a.txt", "x") }, false},
		{"a link", func() error { return os.Symlink("../kept/b.yaml", dir+"/conf.d/b.yaml") }, true},
		{"a change of its target", func() error { return write("kept/b.yaml", "tags: {}\n") }, true},
		{"one less", func() error { return os.Remove(dir + "/conf.d/a.yaml") }, true},
		{"the folder", func() error { return os.Mkdir(dir+"/more", 0o700) }, false},
		{"the missing one", func() error { return write("more/x.yaml", "") }, true},
		{"the config file", func() error { return write("drover.yaml", "{") }, true},
		{"a file of before", func() error { return write("conf.d/a.yaml", "") }, false},
		{"no config file", func() error { return os.Remove(dir + "/drover.yaml") }, true},
		{"still none", func() error { return nil }, false},
	} {
		w := live()
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if w.Changed() != step.want {
			t.Errorf("%s: changed is %v, want %v", step.what, !step.want, step.want)
		}
	}
}

// TestInForce: a config that is not on the disk takes the files that are in force, and reads
// none.
func TestInForce(t *testing.T) {
	all := []pools.ConfigPart{{File: "conf.d/a.yaml", Content: web}, {File: "conf.d/b.yaml", Content: tags}}
	parse := func(patterns string) (*resolve.Farm, error) {
		return config.ParseText(&include.Text{File: "drover.yaml", Main: []byte("include: " + patterns + "\n" + head), Included: slices.Clone(all), From: include.InForce})
	}
	farm, err := parse("[conf.d/b.yaml, conf.d/*.yaml]")
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := farm.Config.Tags["fast"]; !ok || len(farm.Config.Pools) != 1 {
		t.Errorf("got pools %v and tags %v", farm.Config.Pools, farm.Config.Tags)
	}
	if _, err := parse("conf.d/b.yaml"); err != nil && strings.Contains(err.Error(), "conf.d") {
		t.Errorf("one file: %v", err)
	}
	for _, pattern := range []string{"/etc/passwd", "conf.d/c.yaml"} {
		_, err := parse("[conf.d/*, " + pattern + "]")
		fixture.WantText(t, pattern, fmt.Sprint(err), fmt.Sprintf("drover.yaml:1: include: %q is not of the config in force, and no files are read here", pattern))
	}
}

// TestCopyOfRollback: the number of a rollback is in the copy, and a first line that no copy has is
// an error.
func TestCopyOfRollback(t *testing.T) {
	const file = "/etc/drover/drover.yaml"
	text := &include.Text{File: file, Main: []byte("server: {}\n"), Included: []pools.ConfigPart{{File: "conf.d/a.yaml", Content: "tags: {}\n"}}, Rollback: 12}
	for _, parts := range [][]pools.ConfigPart{text.Included, nil} {
		text.Included = parts
		got, err := include.OfCopy(file, text.Copy())
		if err != nil || got.Rollback != 12 || got.Digest() != text.Digest() {
			t.Errorf("got %+v, %v", got, err)
		}
		for _, number := range []string{"0", "", "x", "-1", "99999999999999999999", "12x"} {
			bad := bytes.Replace(text.Copy(), []byte("rollback 12"), []byte("rollback "+number), 1)
			if got, err := include.OfCopy(file, bad); err == nil {
				t.Errorf("rollback %s: got %+v", number, got)
			}
		}
	}
}
