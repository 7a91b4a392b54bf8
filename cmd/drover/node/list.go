package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/cmd/drover/cli/nodeset"
	"drover/internal/natural"
	"drover/pools"
	"drover/pools/config/mistake"
	"drover/web/client"
)

func newNodeListCommand(c *cli.Client) *cobra.Command {
	var sel selector
	var order cli.Order
	var follow, retired bool
	var output cli.Output
	cmd := &cobra.Command{
		Use:   "list [NAME...]",
		Short: "List the nodes, and how their machines are",
		Long: `List shows the nodes of the config and of the API, and the machines of catch-all pools
that have booted. NAME can be a range such as m1c[01-45]. A selector has rules that must
all match, key=value or key!=value, with the keys pool, tag, state, cluster, image, power, chassis,
from (config, api, chassis, catch-all), image.generation (12 digits or all),
image.outdated (true: another generation than its pool boots now), and image.fellback (true:
it boots the generation before, since boots of the new one failed).

With --watch it goes on with a line for each node that comes, changes or goes, until it is
interrupted; with -o json a line is an object. With --retired it lists the nodes that the
config has lost, and that keep their addresses and boots until their time is over.

States: ` + stateList() + `.`,
		Example: `  drover node list
  drover node list -l pool=compute,state=stuck -o wide
  drover node list m1c[01-45] --sort -since
  drover node list -l tag!=storage -o name
  drover node list -l pool=compute --watch
  drover node list --retired`,
	}
	sel.flag(cmd, "rules such as pool=compute,tag=storage,state!=ready")
	order.Flag(cmd, "name", "pool", "ip", "state", "since")
	cmd.Flags().BoolVarP(&follow, "watch", "w", false, "follow the changes; for the formats table and json")
	cmd.Flags().BoolVar(&retired, "retired", false, "list the nodes that the config has lost")
	output.Flag(cmd, "table", "wide", "name", "json", "yaml")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		sel.names = args
		by, reversed, err := order.Parse()
		switch {
		case err != nil:
			return err
		case retired:
			return sel.retired(cmd, c, follow, &output)
		case follow:
			return sel.follow(cmd, c, output.Format())
		}
		nodes, err := sel.found(cmd.Context(), c)
		if err != nil {
			return err
		}
		sortNodes(nodes, by, reversed)
		return printNodes(cmd, nodes, &output)
	}
	return cmd
}

func sortNodes(nodes []pools.NodeInfo, by string, reversed bool) {
	compare := compareBy[by]
	slices.SortStableFunc(nodes, func(a, b pools.NodeInfo) int {
		c := cmp.Or(compare(&a, &b), natural.Compare(a.Name, b.Name))
		if reversed {
			return -c
		}
		return c
	})
}

func printNodes(cmd *cobra.Command, nodes []pools.NodeInfo, output *cli.Output) error {
	if output.Format() == "wide" {
		return wideTable(cmd.OutOrStdout(), nodes)
	}
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.Name
	}
	return output.PrintNamed(cmd, nodes, names, func(w io.Writer) error { return nodeTable(w, nodes) })
}

func stateList() string {
	var words []string
	for _, s := range pools.NodeStates() {
		words = append(words, string(s))
	}
	return strings.Join(words, ", ")
}

// compareBy are the orders of a list.
var compareBy = map[string]func(a, b *pools.NodeInfo) int{
	"name":  func(a, b *pools.NodeInfo) int { return 0 },
	"pool":  func(a, b *pools.NodeInfo) int { return natural.Compare(a.Pool, b.Pool) },
	"ip":    func(a, b *pools.NodeInfo) int { return statusOf(a).Address.Compare(statusOf(b).Address) },
	"state": func(a, b *pools.NodeInfo) int { return cmp.Compare(statusOf(a).State, statusOf(b).State) },
	"since": func(a, b *pools.NodeInfo) int { return statusOf(a).Since.Compare(statusOf(b).Since) },
}

// statusOf returns the status of a node; the zero status if the server sent none.
func statusOf(n *pools.NodeInfo) pools.NodeStatus {
	if n.Status == nil {
		return pools.NodeStatus{}
	}
	return *n.Status
}

func nodeTable(w io.Writer, nodes []pools.NodeInfo) error {
	now := time.Now()
	return cli.Table(w, nodes, "NAME\tPOOL\tIP\tSTATE\tFOR\tTAGS\tFROM\tNOTE", func(n pools.NodeInfo) []any {
		s := statusOf(&n)
		return []any{n.Name, n.Pool, s.Address, s.State, age(s.Since, now), strings.Join(n.Tags, ","), from(n), s.Detail}
	})
}

func wideTable(w io.Writer, nodes []pools.NodeInfo) error {
	return cli.Table(w, nodes, "NAME\tPOOL\tIP\tSTATE\tSINCE\tCLUSTER\tIMAGE\tGENERATION\tPOWER\tBOOTED\tMACS\tTAGS\tFROM\tNOTE", func(n pools.NodeInfo) []any {
		s := statusOf(&n)
		return []any{n.Name, n.Pool, s.Address, s.State, stamp(s.Since), s.Cluster, s.Image, pools.ShortID(s.Generation), s.Power, stamp(s.Booted), joinMACs(n.MACs), strings.Join(n.Tags, ","), from(n), s.Detail}
	})
}

// stamp returns a time in UTC; empty for none.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.DateTime)
}

// age returns the time since t in its two largest units; empty for none.
func age(t, now time.Time) string {
	d := now.Sub(t).Round(time.Second)
	switch {
	case t.IsZero():
		return ""
	case d >= 48*time.Hour:
		return fmt.Sprintf("%dd", int(d/(24*time.Hour)))
	case d >= time.Hour:
		return fmt.Sprintf("%dh%dm", int(d/time.Hour), int(d%time.Hour/time.Minute))
	case d >= time.Minute:
		return fmt.Sprintf("%dm%ds", int(d/time.Minute), int(d%time.Minute/time.Second))
	}
	return max(d, 0).String()
}

// statusLines prints how the machine of a node is.
func statusLines(line func(name, value string), n pools.NodeInfo) {
	if n.Status == nil {
		return
	}
	s := *n.Status
	for _, l := range []struct{ name, value string }{
		{"state", strings.TrimSpace(string(s.State) + " " + s.Detail)}, {"since", stamp(s.Since)}, {"booted", stamp(s.Booted)},
		{"image", s.Image}, {"generation", generation(&s)}, {"fell back", fellBack(&s)}, {"cluster", s.Cluster}, {"power", strings.TrimSpace(s.Power + " " + stamp(s.PowerSeen))},
	} {
		if l.value != "" {
			line(l.name, l.value)
		}
	}
	if s.Address.IsValid() && s.Address != n.IP {
		line("address in use", s.Address.String())
	}
}

// generation returns the generation that a node has booted, and whether its pool boots another.
func generation(s *pools.NodeStatus) string {
	if !s.Outdated {
		return pools.ShortID(s.Generation)
	}
	return pools.ShortID(s.Generation) + ", its pool boots another one now"
}

// fellBack returns in place of which generation a node boots another one; empty: it does not.
func fellBack(s *pools.NodeStatus) string {
	if s.FellBack == "" {
		return ""
	}
	return fmt.Sprintf("%s failed %d times: it boots %s since %s", pools.ShortID(s.FellBack), pools.FallBackAfter, pools.ShortID(s.LastReady), stamp(s.FellBackAt))
}

// selector chooses nodes by names and rules; the zero selector chooses all.
type selector struct {
	names []string
	rules []string // of each --selector; all of them must match
}

// flag adds the flag --selector to a command.
func (s *selector) flag(cmd *cobra.Command, usage string) { RulesFlag(cmd, &s.rules, usage) }

// RulesFlag adds the flag --selector, for [Export].
func RulesFlag(cmd *cobra.Command, rules *[]string, usage string) {
	cmd.Flags().StringArrayVarP(rules, "selector", "l", nil, usage+"; given several times, all must match")
}

// isZero reports whether neither names nor rules are given.
func (s *selector) isZero() bool { return len(s.names) == 0 && len(s.rules) == 0 }

// typed reports whether the operator has typed the name of each of these nodes, and neither a
// range nor rules that stand for it.
func (s *selector) typed(nodes []pools.NodeInfo) bool {
	words := nodeset.Words(strings.Join(s.names, ","))
	return len(s.rules) == 0 && !slices.ContainsFunc(nodes, func(n pools.NodeInfo) bool { return !slices.Contains(words, n.Name) })
}

// rule is one rule of a selector.
type rule struct {
	key, value string
	not        bool
}

// valuesOf are the values that a node has for the keys of rules.
var valuesOf = map[string]func(n *pools.NodeInfo, s pools.NodeStatus) []string{
	"pool":    func(n *pools.NodeInfo, _ pools.NodeStatus) []string { return []string{n.Pool} },
	"tag":     func(n *pools.NodeInfo, s pools.NodeStatus) []string { return slices.Concat(s.PoolTags, n.Tags) },
	"state":   func(_ *pools.NodeInfo, s pools.NodeStatus) []string { return []string{string(s.State)} },
	"cluster": func(_ *pools.NodeInfo, s pools.NodeStatus) []string { return []string{s.Cluster} },
	"image":   func(_ *pools.NodeInfo, s pools.NodeStatus) []string { return []string{s.Image} },
	"image.generation": func(_ *pools.NodeInfo, s pools.NodeStatus) []string {
		return []string{s.Generation, pools.ShortID(s.Generation)}
	},
	"image.outdated": func(_ *pools.NodeInfo, s pools.NodeStatus) []string { return []string{strconv.FormatBool(s.Outdated)} },
	"image.fellback": func(_ *pools.NodeInfo, s pools.NodeStatus) []string {
		return []string{strconv.FormatBool(s.FellBack != "")}
	},
	"power":   func(_ *pools.NodeInfo, s pools.NodeStatus) []string { return []string{s.Power} },
	"chassis": func(n *pools.NodeInfo, _ pools.NodeStatus) []string { return []string{n.ChassisSlot.Chassis} },
	"from":    func(n *pools.NodeInfo, _ pools.NodeStatus) []string { return []string{kindOf(n)} },
}

// wordsOf are the values of keys that have no others.
var wordsOf = map[string][]string{"image.outdated": {"true", "false"}, "image.fellback": {"true", "false"}, "from": {"config", "api", "chassis", "catch-all"}}

// kindOf returns the kind of a node's origin.
func kindOf(n *pools.NodeInfo) string {
	switch {
	case n.CatchAll:
		return "catch-all"
	case n.Declared():
		return "config"
	case !n.ChassisSlot.IsZero():
		return "chassis"
	}
	return "api"
}

// parse returns the rules. A --selector without any, such as one with a variable that is not
// set, is an error: it would fit all nodes.
func (s *selector) parse() (rules []rule, err error) {
	if i := slices.IndexFunc(s.rules, isEmpty); i >= 0 {
		return nil, fmt.Errorf("--selector: %q has no rule", s.rules[i])
	}
	for _, word := range nodeset.Words(strings.Join(s.rules, ",")) {
		key, value, ok := strings.Cut(word, "=")
		r := rule{key: strings.TrimSuffix(key, "!"), value: value, not: strings.HasSuffix(key, "!")}
		switch {
		case ok && valuesOf[r.key] == nil:
			keys := slices.Sorted(maps.Keys(valuesOf))
			return nil, fmt.Errorf("--selector: %q: unknown key %q (%s)", word, r.key, mistake.Hint(r.key, keys, "one of "+strings.Join(keys, ", ")))
		case !ok:
			return nil, fmt.Errorf("--selector: %q: want key=value or key!=value with one of %s", word, strings.Join(slices.Sorted(maps.Keys(valuesOf)), ", "))
		case value == "" && (r.key == "pool" || r.key == "tag" || r.key == "from"): // != would fit all nodes
			return nil, fmt.Errorf("--selector: %q: the value is missing", word)
		case r.key == "state" && !slices.Contains(pools.NodeStates(), pools.NodeState(value)):
			return nil, fmt.Errorf("--selector: unknown state %q (one of %s)", value, stateList())
		case wordsOf[r.key] != nil && !slices.Contains(wordsOf[r.key], value):
			return nil, fmt.Errorf("--selector: unknown %s %q (one of %s)", r.key, value, strings.Join(wordsOf[r.key], ", "))
		}
		rules = append(rules, r)
	}
	return rules, nil
}

func (r *rule) fits(n *pools.NodeInfo) bool {
	return slices.Contains(valuesOf[r.key](n, statusOf(n)), r.value) != r.not
}

// maxNames bounds the names in a request, in bytes.
const maxNames = 4 << 10

// query returns the parameters by which the server leaves out nodes, as far as it has filters
// for the names and rules.
func query(names []string, rules []rule) []string {
	pairs := []string{"catchall", "true"}
	if len(names) > 0 { // a node that the rules do not fit exists all the same
		if all := strings.Join(names, ","); len(all) <= maxNames {
			pairs = append(pairs, "name", all)
		}
		return pairs
	}
	for _, r := range rules {
		if !r.not && r.key != "from" && r.key != "image.generation" && r.key != "image.fellback" { // the server takes no short one
			pairs = append(pairs, r.key, r.value)
		}
	}
	return pairs
}

// isEmpty reports whether a list of names or rules has none.
func isEmpty(list string) bool { return len(nodeset.Words(list)) == 0 }

// parts returns the names and the rules of the selector. An argument without a name is an
// error: without names all nodes are chosen.
func (s *selector) parts() (names []string, rules []rule, err error) {
	rules, err = s.parse()
	names, nameErr := nodeset.Expand(s.names...)
	if i := slices.IndexFunc(s.names, isEmpty); i >= 0 {
		nameErr = fmt.Errorf("%q names no node", s.names[i])
	}
	if err := errors.Join(err, nameErr); err != nil {
		return nil, nil, &cli.Error{Code: cli.Usage, Err: err}
	}
	return names, rules, nil
}

// fits reports whether all rules fit a node.
func fits(n *pools.NodeInfo, rules []rule) bool {
	return !slices.ContainsFunc(rules, func(r rule) bool { return !r.fits(n) })
}

// nodes returns the nodes of the server that the selector chooses. A name that no node has
// is an error.
func (s *selector) nodes(ctx context.Context, c *cli.Client) ([]pools.NodeInfo, error) {
	names, rules, err := s.parts()
	if err != nil {
		return nil, err
	}
	all, err := cli.Get(ctx, c, client.Nodes, query(names, rules)...)
	if err != nil {
		return nil, err
	}
	missing := map[string]bool{}
	for _, name := range names {
		missing[name] = true
	}
	out := []pools.NodeInfo{} // [] rather than null
	for i := range all {
		named := len(names) == 0 || missing[all[i].Name]
		delete(missing, all[i].Name)
		if named && fits(&all[i], rules) {
			out = append(out, all[i])
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("no such node: %s", strings.Join(slices.SortedFunc(maps.Keys(missing), natural.Compare), " "))
	}
	return out, nil
}
