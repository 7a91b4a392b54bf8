package complete_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/cmd/drover/complete"
	"drover/e2e/clitest"
	"drover/e2e/fixture"
)

const farm = `pools:
  - {name: web, image: debian-12, nodes: [{name: m10, macs: ["52:54:00:00:00:01"]}, {name: m9}]}
  - {name: "$(reboot)", image: debian-13, mistake: 7}
tags: {gpu: {}, -x: {}}
clusters: [{name: a, hosts: [{name: h1}]}]
`

// commands has commands with the paths of drover's, and their flags.
func commands() []*cobra.Command {
	c := &cli.Client{}
	leaf := func(use string) *cobra.Command {
		cmd := &cobra.Command{Use: use, Run: func(*cobra.Command, []string) { panic("a completion runs no command") }}
		cmd.Flags().String("pool", "", "")
		cmd.Flags().StringP("selector", "l", "", "")
		cmd.Flags().String("config", "", "")
		cmd.Flags().String("images", "/nowhere", "")
		return cmd
	}
	root := &cobra.Command{Use: "drover"}
	for _, group := range []struct{ name, commands string }{
		{"node", "show set rename next-boot"}, {"pool", "show"}, {"tag", "show"}, {"token", "revoke"}, {"lease", "release"}, {"power", "on"}, {"host", "show"},
	} {
		cmd := &cobra.Command{Use: group.name}
		c.Flags(cmd)
		for use := range strings.FieldsSeq(group.commands) {
			cmd.AddCommand(leaf(use))
		}
		root.AddCommand(cmd)
	}
	complete.Install(root)
	return root.Commands()
}

// check completes a line, whose last word is ” where it has not begun, and compares the words.
func check(t *testing.T, line string, want ...string) {
	t.Helper()
	root, errs := &cobra.Command{Use: "drover"}, &strings.Builder{}
	var out strings.Builder
	root.AddCommand(commands()...)
	words := strings.Fields("__complete " + line)
	if words[len(words)-1] == "''" {
		words[len(words)-1] = ""
	}
	code := cli.Execute(t.Context(), root, words, &out, errs)
	got := strings.Split(strings.TrimSpace(out.String()), "\n")
	if got = got[:len(got)-1]; code != 0 || !slices.Equal(got, want) { // the last one is for the shell
		t.Errorf("%s: exit %d, got %q, want %q", line, code, got, want)
	}
	fixture.WantNoText(t, "standard error of "+line, errs.String(), "drover:", "panic")
}

// TestOfServer: names come in the order of people, without those that are typed already, and
// without any that means something to a shell: machines and chassis give some of them.
func TestOfServer(t *testing.T) {
	clitest.Serve(t, map[string]string{
		"GET /api/v1/nodes": `[{"name": "m10", "pool": "web"}, {"name": "m9", "pool": "web; reboot"}, {"name": "m9"}, {"name": "$(reboot)"}, {"name": "-rf"},
			{"name": "a b"}, {"name": "x\ny"}, {"name": ""}, {"name": "` + "`reboot`" + `"}]`,
		"GET /api/v1/pools":  `[{"name": "web", "image": "debian-12"}, {"name": "db", "image": ""}]`,
		"GET /api/v1/tags":   `[{"name": "gpu"}]`,
		"GET /api/v1/leases": `[{"address": "10.28.0.9", "node": "m9"}]`,
		"GET /api/v1/tokens": "403 this needs the role admin",
	})
	check(t, "node show ''", "m9", "m10\tweb")
	check(t, "node show m1", "m10\tweb")
	check(t, "node show m9 ''")
	check(t, "node set m10 m9 ''")
	check(t, "node set m10 m", "m9")
	check(t, "node set --pool ''", "db", "web")
	check(t, "node next-boot m9 ''", "clear", "image=debian-12", "local", "rescue")
	check(t, "lease release 10.", "10.28.0.9\tm9")
	check(t, "token revoke ''")
	check(t, "power on m9,m", "m9,m10\tweb")
	check(t, "power on pool=web,tag=", "pool=web,tag=gpu")
	check(t, "node set -l p", "pool=", "power=")
	check(t, "node set -l state!=st", "state!=stuck")
	check(t, "node set -l nothing=''")
}

// TestWithoutServer: names are those of the config file, also of one with mistakes; without a
// file there are none, and no error.
func TestWithoutServer(t *testing.T) {
	clitest.Serve(t, nil)
	t.Setenv("DROVER_TOKEN_FILE", "/nowhere")
	t.Chdir(fixture.Tree(t, map[string]string{"drover.yaml": farm, "binary": "\x00\xff"}))
	check(t, "node show --config drover.yaml ''", "m9\tweb", "m10\tweb")
	check(t, "pool show --config drover.yaml ''", "web")
	check(t, "tag show --config drover.yaml ''", "gpu")
	check(t, "host show --config drover.yaml ''", "h1\ta")
	check(t, "node next-boot m9 --config drover.yaml image=", "image=debian-12", "image=debian-13")
	for _, file := range []string{"none.yaml", "binary", "."} {
		check(t, "node show --config "+file+" ''")
	}
}
