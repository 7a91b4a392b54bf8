// Package complete gives the shell the names that an argument or a flag of drover can have:
// nodes, pools, tags, clusters, images, chassis, addresses and MACs.
//
// [Install] knows the arguments of each command. Names come from the running server, from
// the config file, or from the directory of images. A completion is a help and no more: it
// takes two seconds at most, and a server or file that cannot be read gives no names and no
// error. The shell gets no name that has a meaning for it.
package complete

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"drover/internal/natural"
)

// limit is the longest time for which a shell waits.
const limit = 2 * time.Second

// most bounds the names that a shell gets.
const most = 5000

// source returns names, each with a text about it behind a tab if there is one. It ends
// with ctx.
type source func(ctx context.Context, cmd *cobra.Command) []string

// flags are the sources of flags, by name.
var flags = map[string]source{
	"pool": poolNames, "tag": tagNames, "add-tag": tagNames, "remove-tag": tagNames, "node": nodeNames, "cluster": clusterNames,
	"chassis": chassisNames, "image": imageNames, "context": contextNames,
}

// arguments are the sources of a command's arguments, by its path without "drover". The
// last one is for all further arguments; nil: these have no names.
var arguments = map[string][]source{
	"boot forget":       {nodeNames},
	"boot show":         {nodeNames, nil},
	"boot watch":        {nodeNames},
	"chassis sync":      {chassisNames},
	"cluster check":     {clusterNames, nil},
	"cluster show":      {clusterNames, nil},
	"pool show":         {poolNames, nil},
	"tag show":          {tagNames, nil},
	"cluster prepare":   {clusterNames, nil},
	"config diff":       {configNumbers, configNumbers, nil},
	"config rollback":   {configNumbers, nil},
	"config show":       {configNumbers, nil},
	"context use":       {contextNames, nil},
	"logout":            {contextNames},
	"explain":           {nodeMACs, nil},
	"host bundle":       {hostNames, nil},
	"host check":        {hostNames, nil},
	"host invite":       {hostNames, nil},
	"host rm":           {hostNames, nil},
	"host show":         {hostNames, nil},
	"image promote":     {imageNames, nil},
	"image mark":        {imageNames, fixed("bad", "good"), nil},
	"image prune":       {imageNames},
	"image rollback":    {imageNames, nil},
	"image show":        {imageNames, nil},
	"import moonshot":   {chassisNames},
	"lease release":     {leaseAddresses},
	"node forget":       {retiredNames},
	"node list":         {nodeNames},
	"node move":         {nodeNames},
	"node next-boot":    {nodeNames, nextBoots, nil},
	"node rename":       {nodeNames, nil},
	"node rm":           {nodeNames},
	"node set":          {nodeNames},
	"node show":         {nodeNames, nil},
	"tenant kubeconfig": {clusterNames, nil},
	"tenant new-keys":   {clusterNames, nil},
	"token revoke":      {apiTokenNames},
	"token rotate":      {apiTokenNames, nil},
	"token show":        {clusterNames, nil},
	"unknown adopt":     {unknownMACs},
	"unknown describe":  {unknownMACs, nil},
	"unknown forget":    {unknownMACs},
}

// Install gives root and all commands below it their completions.
func Install(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		Install(cmd)
	}
	path := pathOf(root)
	if all, ok := arguments[path]; ok {
		root.ValidArgsFunction = func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
			get := all[min(len(args), len(all)-1)]
			if get == nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return fitting(within(cmd, get), begun, args), cobra.ShellCompDirectiveNoFileComp
		}
	}
	for name, get := range flags {
		if f := root.LocalFlags().Lookup(name); f != nil {
			_ = root.RegisterFlagCompletionFunc(name, func(cmd *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
				return fitting(within(cmd, get), begun, nil), cobra.ShellCompDirectiveNoFileComp
			})
		}
	}
	switch {
	case path == "image build":
		_ = root.RegisterFlagCompletionFunc("name", func(cmd *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return fitting(within(cmd, imageNames), begun, nil), cobra.ShellCompDirectiveNoFileComp
		})
	case strings.HasPrefix(path, "power "):
		root.ValidArgsFunction = func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return words(cmd, powerRules, true, begun)
		}
	}
	if root.LocalFlags().Lookup("selector") != nil {
		_ = root.RegisterFlagCompletionFunc("selector", func(cmd *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return words(cmd, nodeRules, false, begun)
		})
	}
}

// pathOf returns the path of a command without the name of the program.
func pathOf(cmd *cobra.Command) string {
	_, path, _ := strings.Cut(cmd.CommandPath(), " ")
	return path
}

// within returns what a source has within the limit of time.
func within(cmd *cobra.Command, get source) []string {
	ctx, cancel := context.WithTimeout(cmp.Or(cmd.Context(), context.Background()), limit)
	defer cancel()
	found := make(chan []string, 1) // reading a file does not end with ctx
	go func() { found <- get(ctx, cmd) }()
	select {
	case all := <-found:
		return all
	case <-ctx.Done():
		return nil
	}
}

// fitting returns the names that begin as the word that is typed, without those that are
// there already, in the order of people.
func fitting(all []string, begun string, but []string) (out []cobra.Completion) {
	for _, line := range all {
		name, about, _ := strings.Cut(line, "\t")
		if !strings.HasPrefix(name, begun) || slices.Contains(but, name) || !harmless(name) {
			continue
		}
		if harmless(about) && about != "" {
			name += "\t" + about
		}
		out = append(out, name)
	}
	slices.SortFunc(out, natural.Compare)
	out = slices.Compact(out)
	return out[:min(len(out), most)]
}

// harmless reports whether a shell takes a word as it is. Names of the network are in it.
func harmless(word string) bool {
	return word != "" && !strings.HasPrefix(word, "-") && !strings.ContainsFunc(word, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_.:/@=,", r)
	})
}

// words completes the last of several words with commas between them: rules key=value, and
// names of nodes.
func words(cmd *cobra.Command, rules map[string]source, names bool, begun string) (out []cobra.Completion, directive cobra.ShellCompDirective) {
	done, last := "", begun
	if i := strings.LastIndexByte(begun, ','); i >= 0 {
		done, last = begun[:i+1], begun[i+1:]
	}
	directive = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	if key, value, isRule := strings.Cut(last, "="); isRule {
		if get := rules[strings.TrimSuffix(key, "!")]; get != nil {
			for _, v := range fitting(within(cmd, get), value, nil) {
				out = append(out, done+key+"="+v)
			}
		}
		return out, directive
	}
	for key := range rules {
		if strings.HasPrefix(key, last) {
			out = append(out, done+key+"=")
		}
	}
	slices.Sort(out)
	if names {
		for _, v := range fitting(within(cmd, nodeNames), last, strings.Split(done, ",")) {
			out = append(out, done+v)
		}
	}
	return out, directive
}
