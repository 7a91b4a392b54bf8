package main

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"drover/e2e/manual"
	"drover/pools/config"
)

// TestReadmeConfig checks the config in the README.
func TestReadmeConfig(t *testing.T) {
	text, err := manual.Block("../..", "README.md", "yaml")
	if err != nil {
		t.Fatal(err)
	}
	farm, err := config.Parse("README.md", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(farm.Nodes()) != 2 || len(farm.Config.Pools) != 2 {
		t.Errorf("got %d nodes in %d pools, want 2 in 2", len(farm.Nodes()), len(farm.Config.Pools))
	}
}

// TestNodesConfigs checks the configs in docs/nodes.md; those without a server are tags.
func TestNodesConfigs(t *testing.T) {
	text, err := os.ReadFile("../../docs/nodes.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllStringSubmatch(string(text), -1)
	if len(blocks) < 4 {
		t.Errorf("got %d blocks of YAML, want at least 4", len(blocks))
	}
	for _, b := range blocks {
		if strings.HasPrefix(b[1], "tags:") {
			b[1] += "server: {interfaces: [eth1], address: 10.28.0.2}\nsubnets: [{cidr: 10.28.0.0/16}]\npools: [{name: web, image: i}]\n"
		}
		if _, err := config.Parse("nodes.md", []byte(b[1])); err != nil {
			t.Errorf("%v in\n%s", err, b[1])
		}
	}
}

// allCommands reads the whole manual.
func allCommands(t *testing.T) (all []manual.Command) {
	t.Helper()
	pages, err := manual.Pages("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		commands, err := manual.Read("../..", page)
		if err != nil {
			t.Error(err)
		}
		all = append(all, commands...)
	}
	return all
}

// TestManualForm: every page follows the convention of package manual.
func TestManualForm(t *testing.T) {
	if len(allCommands(t)) < 50 {
		t.Error("the manual has hardly any commands")
	}
}

// TestManualMentions: what running text calls a command of drover is one, with the
// flags that it is given.
func TestManualMentions(t *testing.T) {
	pages, err := manual.Pages("../..")
	if err != nil {
		t.Fatal(err)
	}
	mention := regexp.MustCompile("`drover ([a-z][^`]*)`")
	for _, page := range append(pages, "ARCHITECTURE.md") {
		text, err := os.ReadFile(filepath.Join("../..", page))
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range mention.FindAllStringSubmatch(string(text), -1) {
			checkMention(t, page, strings.Fields(found[1]))
		}
	}
}

// TestAlertMentions: what the alerts call a command of drover is one, with the flags that it
// is given. Their texts have no backquotes: a mention is one whose first word is a command.
func TestAlertMentions(t *testing.T) {
	const page = "deploy/alerts.yaml"
	text, err := os.ReadFile(filepath.Join("../..", page))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, found := range regexp.MustCompile(`\bdrover ([a-z][a-z -]*)`).FindAllStringSubmatch(string(text), -1) {
		words := strings.Fields(found[1])
		if _, _, err := newRootCommand().Find(words[:1]); err == nil {
			n++
			checkMention(t, page, words)
		}
	}
	if n < 5 {
		t.Errorf("%s mentions %d commands, want at least 5", page, n)
	}
}

// checkMention checks that words, which a page has after "drover", begin with a command, and
// that it has the flags among them.
func checkMention(t *testing.T, page string, words []string) {
	t.Helper()
	cmd, rest, err := newRootCommand().Find(words)
	if err != nil || !cmd.HasParent() || cmd.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		t.Errorf("%s: %q is no command: %v", page, "drover "+strings.Join(words, " "), err)
		return
	}
	for _, word := range rest {
		name, isFlag := strings.CutPrefix(word, "--")
		name, _, _ = strings.Cut(name, "=")
		if isFlag && name != "help" && cmd.Flag(name) == nil {
			t.Errorf("%s: %q: %s has no flag --%s", page, "drover "+strings.Join(words, " "), cmd.CommandPath(), name)
		}
	}
}

// TestParity: docs/from-kubefarm.md names the counterpart of each item of the parity list,
// and the tests of the items that are settings. [TestManualTests] knows which tests exist.
func TestParity(t *testing.T) {
	text, err := os.ReadFile("../../docs/from-kubefarm.md")
	if err != nil {
		t.Fatal(err)
	}
	counterparts, tests, _ := strings.Cut(string(text), "\n## Tests\n")
	row := func(text string, item int) string {
		return regexp.MustCompile(fmt.Sprintf(`(?m)^\| (\d+, )*%d(, \d+)* \|.*\|$`, item)).FindString(text)
	}
	for item := 1; item < 60; item++ {
		if row(counterparts, item) == "" {
			t.Errorf("item %d has no counterpart", item)
		}
		if found := row(tests, item); item > 20 && !strings.Contains(found, "`Test") {
			t.Errorf("item %d: got %q, want a test", item, found)
		}
	}
}

// TestManualTests: every test that the manual names is in the source tree.
func TestManualTests(t *testing.T) {
	declared := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, found := range function.FindAllStringSubmatch(string(text), -1) {
			declared[found[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	pages, err := manual.Pages("../..")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(Test[A-Z]\\w*)")
	for _, page := range pages {
		text, err := os.ReadFile(filepath.Join("../..", page))
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range named.FindAllStringSubmatch(string(text), -1) {
			if !declared[found[1]] {
				t.Errorf("%s names %s, which is no test", page, found[1])
			}
		}
	}
}

// TestManualLinks: every link within the manual leads to a file, and to a heading of it.
func TestManualLinks(t *testing.T) {
	pages, err := manual.Pages("../..")
	if err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(`\]\(\s*([^)\s]+)\)`)
	for _, page := range append(pages, "ARCHITECTURE.md", "CHANGELOG.md") {
		text, err := os.ReadFile(filepath.Join("../..", page))
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range link.FindAllStringSubmatch(string(text), -1) {
			file, heading, _ := strings.Cut(found[1], "#")
			if strings.Contains(file, "://") {
				continue
			}
			target := page
			if file != "" {
				target = filepath.Join(filepath.Dir(page), file)
			}
			there, err := os.Stat(filepath.Join("../..", target))
			if err != nil {
				t.Errorf("%s links to %s: %v", page, found[1], err)
				continue
			}
			if heading != "" && !there.IsDir() && !hasHeading(t, target, heading) {
				t.Errorf("%s links to %s: no such heading", page, found[1])
			}
		}
	}
}

// hasHeading reports whether a page has a heading with this anchor.
func hasHeading(t *testing.T, page, anchor string) bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", page))
	if err != nil {
		t.Fatal(err)
	}
	drop := regexp.MustCompile(`[^a-z0-9 -]`)
	for line := range strings.Lines(string(text)) {
		if title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") {
			title = drop.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), "")
			if strings.ReplaceAll(title, " ", "-") == anchor {
				return true
			}
		}
	}
	return false
}

// flagOf returns the value of a flag of the test program.
func flagOf(name string) string {
	if f := flag.Lookup(name); f != nil {
		return f.Value.String()
	}
	return ""
}

// TestSoakIsListed: what CI leaves to "make soak" is named in CONTRIBUTING.md.
func TestSoakIsListed(t *testing.T) {
	list, err := os.ReadFile("../../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../../e2e/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	skips, found := regexp.MustCompile(`(?m)^func (Test\w+)\(.*\n(?:\t.*\n)*?\tsoak\(t\)`), 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, test := range skips.FindAllSubmatch(text, -1) {
			found++
			if !strings.Contains(string(list), "`"+string(test[1])+"`") {
				t.Errorf("CONTRIBUTING.md does not name %s of %s", test[1], file)
			}
		}
	}
	if found == 0 {
		t.Error("no test calls soak")
	}
}
