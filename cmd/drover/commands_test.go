package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// withoutOutput are the commands without -o json, each with what it prints instead.
var withoutOutput = map[string]string{
	"completion bash":       "a script for the shell",
	"completion fish":       "a script for the shell",
	"completion powershell": "a script for the shell",
	"completion zsh":        "a script for the shell",
	"config schema":         "a JSON Schema",
	"export":                "objects, as YAML documents",
	"help":                  "a help text",
	"host invite":           "a line to type",
	"host proxy":            "the log",
	"man":                   "nothing: it writes files",
	"serve":                 "the log, with --log-format json",
	"ssh ca":                "a line of known_hosts",
	"tenant kubeconfig":     "a kubeconfig",
}

// withoutNames are the arguments that no completion can know.
var withoutNames = map[string]string{
	"image build": "a source of any kind, or a directory",
	"import csv":  "files", "import dnsmasq": "files", "import dnsmasq-controller": "files", "import isc-dhcpd": "files",
	"import kea": "files", "import kubefarm": "files", "import matchbox": "files", "import warewulf": "files",
	"host proxy": "Services of a cluster",
	"login":      "a URL", "backup": "a file", "restore": "a file",
	"man":      "a directory",
	"media":    "a file",
	"node add": "a new name", "token create": "a new name",
	"help":  "cobra knows the commands",
	"apply": "none: a flag has the file", "import ilo": "none: a flag has the addresses",
}

// named are the flags whose values are names that a server or a config knows.
var named = []string{"pool", "tag", "add-tag", "remove-tag", "node", "cluster", "chassis", "image", "selector", "context"}

// TestCommands: each command has a description and an example that is a command of drover,
// output for programs, and completion of the names that it takes.
func TestCommands(t *testing.T) {
	n := 0
	outputs, arguments := len(withoutOutput), len(withoutNames)
	walk(newRootCommand(), func(cmd *cobra.Command) {
		n++
		_, path, _ := strings.Cut(cmd.CommandPath(), " ")
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: the description is %q; want a line without a full stop", cmd.CommandPath(), cmd.Short)
		}
		checkExample(t, cmd)
		for _, name := range named {
			if cmd.LocalFlags().Lookup(name) == nil {
				continue
			}
			if _, ok := cmd.GetFlagCompletionFunc(name); !ok {
				t.Errorf("%s: --%s has no completion", cmd.CommandPath(), name)
			}
		}
		if cmd.HasSubCommands() {
			return
		}
		switch f := cmd.Flag("output"); {
		case withoutOutput[path] != "":
			outputs--
		case strings.HasPrefix(path, "import "): // --output is the file there
			f = cmd.Flags().ShorthandLookup("o")
			fallthrough
		default:
			if f == nil || f.Shorthand != "o" || !strings.Contains(f.Usage, "json") {
				t.Errorf("%s has no -o json", cmd.CommandPath())
			}
		}
		switch takes := argument.MatchString(cmd.Use); {
		case withoutNames[path] != "":
			arguments--
		case takes && cmd.ValidArgsFunction == nil:
			t.Errorf("%s: its arguments have no completion", cmd.Use)
		}
	})
	if n < 80 || outputs != 0 || arguments != 0 {
		t.Errorf("walked over %d commands; %d of the exceptions for output and %d for arguments are no command", n, outputs, arguments)
	}
}

// argument finds an argument in the usage of a command, in capitals.
var argument = regexp.MustCompile(`\b[A-Z]{2,}`)

func walk(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, c := range cmd.Commands() {
		walk(c, visit)
	}
}

// checkExample: an example has a line that begins with this command, or for a group with
// one of its commands, with flags that it knows.
func checkExample(t *testing.T, cmd *cobra.Command) {
	t.Helper()
	found := false
	for line := range strings.Lines(cmd.Example) {
		_, line, begins := strings.Cut(line, cmd.CommandPath())
		if !begins {
			continue
		}
		found = true
		words := strings.Fields(line)
		if cmd.HasSubCommands() && (len(words) == 0 || !slices.ContainsFunc(cmd.Commands(), func(c *cobra.Command) bool { return c.Name() == words[0] })) {
			t.Errorf("%s: the example has no such command: %q", cmd.CommandPath(), line)
		}
		for _, word := range words {
			name, isFlag := strings.CutPrefix(word, "--")
			name, _, _ = strings.Cut(name, "=")
			if isFlag && !cmd.HasSubCommands() && cmd.Flag(name) == nil && name != "extract" {
				t.Errorf("%s: the example has the flag --%s, which the command has not", cmd.CommandPath(), name)
			}
		}
	}
	if !found {
		t.Errorf("%s has no example: %q", cmd.CommandPath(), cmd.Example)
	}
}
