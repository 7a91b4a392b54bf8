package main

import "github.com/spf13/cobra"

// groups are the headings of the help, with the commands below each. A command is in one of them.
var groups = []struct {
	title string
	names []string
}{
	{"Every day", []string{"status", "node", "boot", "power", "unknown", "image", "audit"}},
	{"Config", []string{"init", "check", "diff", "explain", "reload", "apply", "export", "config", "pool", "tag"}},
	{"Server", []string{"serve", "doctor", "backup", "restore", "loaders", "media", "lease"}},
	{"Clusters", []string{"cluster", "tenant", "host"}},
	{"Hardware and other servers", []string{"chassis", "import"}},
	{"Access", []string{"login", "logout", "context", "token", "ssh"}},
}

// group puts the commands below headings.
func group(root *cobra.Command) {
	of := map[string]string{}
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title + ":"})
		for _, name := range g.names {
			of[name] = g.title
		}
	}
	for _, c := range root.Commands() {
		c.GroupID = of[c.Name()]
	}
}
