package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// habits are words of other tools' command lines, with those that drover has for the same.
var habits = map[string][]string{
	"get": {"list", "show"}, "ls": {"list"}, "describe": {"show"}, "info": {"show"}, "cat": {"show"}, "inspect": {"show"},
	"delete": {"rm", "remove", "forget", "release", "revoke"}, "del": {"rm", "remove", "forget", "release", "revoke"}, "remove": {"rm", "forget", "release", "revoke"},
	"edit": {"set"}, "label": {"set"}, "patch": {"set"}, "update": {"set"}, "create": {"add"}, "new": {"add"}, "reboot": {"cycle"}, "restart": {"cycle"},
}

// instead returns the commands that do what a word of another tool does, for arguments that cobra
// took for an unknown command; nil if there are none.
func instead(root *cobra.Command, args []string) (commands []string) {
	args = slices.DeleteFunc(slices.Clone(args), func(a string) bool { return strings.HasPrefix(a, "-") })
	noun, rest, err := root.Find(args)
	if err != nil && noun == nil {
		noun, rest = root, args
	}
	if len(rest) == 0 {
		return nil
	}
	words := habits[rest[0]]
	if noun == root && words != nil { // get nodes, in place of node list
		noun, _, err = root.Find([]string{"node"})
		if err != nil {
			return nil
		}
		if len(rest) > 1 {
			kind, _, _ := strings.Cut(rest[1], "/")
			for _, name := range []string{kind, strings.TrimSuffix(kind, "s"), strings.TrimSuffix(kind, "es")} {
				if c, _, err := root.Find([]string{name}); err == nil && c != root {
					noun = c
				}
			}
		}
	}
	for _, c := range noun.Commands() {
		if slices.Contains(words, c.Name()) {
			commands = append(commands, c.CommandPath())
		}
	}
	return commands
}
