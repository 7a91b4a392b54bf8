package node

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/cmd/drover/cli/nodeset"
	"drover/internal/printable"
	"drover/pools"
	"drover/pools/config/decode"
	"drover/web/client"
)

// change is a change of nodes: all of them or none.
type change struct {
	api         *cli.Client
	sel         selector
	dryRun, yes bool
	output      cli.Output
}

// flags adds the flags that all changes have; selecting adds -l.
func (ch *change) flags(cmd *cobra.Command, selecting bool) {
	cmd.Flags().BoolVar(&ch.dryRun, "dry-run", false, "check the change and show it, and change nothing")
	cli.YesFlag(cmd, &ch.yes)
	ch.output.Flag(cmd, "text", "name", "json", "yaml")
	if selecting {
		ch.sel.flag(cmd, "rules such as pool=compute,tag=storage,state!=ready")
	}
}

// nodes returns the nodes that the operator has chosen by names or by rules.
func (ch *change) nodes(cmd *cobra.Command, names []string) ([]pools.NodeInfo, error) {
	if ch.sel.names = names; ch.sel.isZero() {
		return nil, &cli.Error{Code: cli.Usage, Err: errors.New("which nodes? give names, ranges, or rules with --selector")}
	}
	return ch.sel.found(cmd.Context(), ch.api)
}

// run changes the chosen nodes by edit. It shows what changes, and asks unless each of
// several nodes was named.
func (ch *change) run(cmd *cobra.Command, names []string, edit func(*pools.PoolNode) error) error {
	nodes, err := ch.nodes(cmd, names)
	if err != nil {
		return err
	}
	var changes []pools.NodeChange
	for _, n := range nodes {
		if n.CatchAll {
			return fmt.Errorf("%s is a machine that no node declares: drover unknown adopt makes it one", n.Name)
		}
		old, next := n.PoolNode, n.PoolNode
		next.Tags, next.MACs = slices.Clone(next.Tags), slices.Clone(next.MACs)
		if err := edit(&next); err != nil {
			return &cli.Error{Code: cli.Usage, Err: err}
		}
		changes = append(changes, pools.NodeChange{Old: &old, New: &next})
	}
	return ch.apply(cmd, changes, ch.sel.typed(nodes))
}

// apply checks changes on the server, shows them, and makes them in one step. typed: the
// operator has typed the name of each node. The result is the nodes as they are then.
func (ch *change) apply(cmd *cobra.Command, changes []pools.NodeChange, typed bool) error {
	if _, err := ch.made(cmd, changes, func(shown int) bool { return !typed && shown > 1 }); err != nil {
		return err
	}
	nodes, names := make([]pools.PoolNode, len(changes)), make([]string, len(changes))
	for i, c := range changes {
		nodes[i], names[i] = *c.New, c.New.Name
	}
	return ch.output.PrintNamed(cmd, nodes, names, func(io.Writer) error { return nil }) // people have seen it
}

// made checks changes on the server, shows them, and asks if asks reports so for the number of
// nodes that change. It makes them in one step, and reports whether it has.
func (ch *change) made(cmd *cobra.Command, changes []pools.NodeChange, asks func(shown int) bool) (bool, error) {
	batch := pools.NodeBatch{Changes: changes}
	if len(changes) > 0 { // an empty list is null
		if _, err := cli.Send(cmd.Context(), ch.api, client.ChangeNodes.Try(), batch); err != nil {
			return false, err
		}
	}
	visible, err := ch.show(cmd, changes)
	switch shown := len(visible); {
	case err != nil:
		return false, err
	case shown == 0:
		fmt.Fprintln(ch.output.Log(cmd), "nothing changes")
		return false, nil
	case ch.dryRun:
		return false, nil
	case asks(shown):
		if err := cli.Confirm(cmd, ch.yes, tally(visible, "add", "change", "remove")+"?"); err != nil {
			return false, err
		}
	}
	err = ch.api.ChangeNodes(cmd.Context(), changes)
	return err == nil, err
}

// tally returns what changes do, as text: "add 1 and remove 2 nodes".
func tally(changes []pools.NodeChange, add, change, remove string) string {
	var n [3]int
	for _, c := range changes {
		switch {
		case c.Old == nil:
			n[0]++
		case c.New != nil:
			n[1]++
		default:
			n[2]++
		}
	}
	var words []string
	last := 0
	for i, verb := range []string{add, change, remove} {
		if n[i] > 0 {
			words, last = append(words, fmt.Sprintf("%s %d", verb, n[i])), n[i]
		}
	}
	noun := " nodes"
	if last == 1 {
		noun = " node"
	}
	return strings.Join(words, ", ") + noun
}

// show writes what changes, and returns the changes that change anything.
func (ch *change) show(cmd *cobra.Command, changes []pools.NodeChange) (shown []pools.NodeChange, err error) {
	for _, c := range changes {
		text, err := differences(c)
		if err != nil {
			return shown, err
		}
		if text == "" {
			continue
		}
		shown = append(shown, c)
		if _, err := io.WriteString(ch.output.Log(cmd), text); err != nil {
			return shown, err
		}
	}
	return shown, nil
}

// differences returns the fields of a node that a change changes, as lines; a single line for a
// node that goes.
func differences(c pools.NodeChange) (string, error) {
	if n := c.Old; c.New == nil {
		return printable.Text(fmt.Sprintf("- %s (pool %s, %s, %s)", n.Name, n.Pool, cli.AddrOrDash(cmp.Or(n.IP, n.IP6)), cli.OrDash(joinMACs(n.MACs)))) + "\n", nil
	}
	old, err := fieldsOf(c.Old)
	if err != nil {
		return "", err
	}
	next, err := fieldsOf(c.New)
	if err != nil {
		return "", err
	}
	keys := maps.Clone(old)
	maps.Copy(keys, next)
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if old[key] != next[key] {
			fmt.Fprintf(&b, "    %s: %s -> %s\n", key, cli.OrDash(old[key]), cli.OrDash(next[key]))
		}
	}
	switch {
	case b.Len() == 0:
		return "", nil
	case c.Old == nil:
		return "+ " + printable.Text(c.New.Name) + "\n" + b.String(), nil
	}
	return "~ " + printable.Text(c.Old.Name) + "\n" + b.String(), nil
}

// fieldsOf returns the fields of a node as text; none for nil.
func fieldsOf(n *pools.PoolNode) (map[string]string, error) {
	out := map[string]string{}
	if n == nil {
		return out, nil
	}
	doc, err := decode.Document(n)
	if err != nil {
		return nil, err
	}
	fields := doc.Content[0].Content
	for i := 0; i+1 < len(fields); i += 2 {
		var b strings.Builder
		fields[i+1].Style = 0
		if err := decode.Inline(&b, fields[i+1]); err != nil {
			return nil, err
		}
		out[fields[i].Value] = printable.Line(strings.TrimSpace(b.String()), 200)
	}
	return out, nil
}

// isOne reports whether arguments are the name of one node.
func isOne(args ...string) bool {
	return len(args) == 1 && len(nodeset.Words(args[0])) == 1 && !nodeset.IsPattern(args[0])
}

func newSetCommand(c *cli.Client) *cobra.Command {
	ch := &change{api: c}
	var edit edits
	cmd := &cobra.Command{
		Use:   "set NAME...",
		Short: "Change nodes that were added over the API, all in one step",
		Long: `Set changes nodes, from their next DHCP packet on. NAME can be a range such as
m1c[01-45]. It changes all of the nodes or none, and shows what changes; if the nodes were
not all typed out by name, it asks. Nodes of the config file are changed there.`,
		Example: `  drover node set m1c30 --tag storage --ip 10.28.36.230
  drover node set m1c[01-45] --add-tag gpu --dry-run
  drover node set -l pool=compute,state=stuck --remove-tag debug -y`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := edit.check(cmd); err != nil {
				return &cli.Error{Code: cli.Usage, Err: err}
			}
			if one := cmd.Flags().Changed("ip") || cmd.Flags().Changed("mac"); one && !isOne(args...) {
				return &cli.Error{Code: cli.Usage, Err: errors.New("--ip and --mac are for one node")}
			}
			return ch.run(cmd, args, edit.apply)
		},
	}
	edit.flags(cmd)
	ch.flags(cmd, true)
	return cmd
}

// edits are the flags of drover node set.
type edits struct {
	pool, ip                   string
	tags, macs, addTags, rmTag []string
	ignore                     bool

	addr    netip.Addr
	parsed  []pools.MAC
	changed func(flag string) bool
}

func (e *edits) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&e.pool, "pool", "", "pool")
	f.StringVar(&e.ip, "ip", "", `address, "" for none`)
	f.StringArrayVar(&e.tags, "tag", nil, `its tags, in place of those that it has; once for each, "" for none`)
	f.StringArrayVar(&e.addTags, "add-tag", nil, "tag that it has, too")
	f.StringArrayVar(&e.rmTag, "remove-tag", nil, "tag that it has no longer")
	f.StringArrayVar(&e.macs, "mac", nil, "MACs, in place of those that it has; once for each")
	f.BoolVar(&e.ignore, "ignore", false, "it gets no answer; --ignore=false: it gets some again")
}

func (e *edits) check(cmd *cobra.Command) (err error) {
	e.changed = cmd.Flags().Changed
	some := false
	for _, name := range []string{"pool", "ip", "tag", "add-tag", "remove-tag", "mac", "ignore"} {
		some = some || e.changed(name)
	}
	if !some {
		return errors.New("what changes? give --pool, --ip, --tag, --add-tag, --remove-tag, --mac or --ignore")
	}
	if e.ip != "" {
		if e.addr, err = netip.ParseAddr(e.ip); err != nil {
			return fmt.Errorf("--ip: %q is not an IP address", e.ip)
		}
	}
	for _, s := range e.macs {
		m, err := pools.ParseMAC(s)
		if err != nil {
			return fmt.Errorf("--mac: %w", err)
		}
		e.parsed = append(e.parsed, m)
	}
	return nil
}

func (e *edits) apply(n *pools.PoolNode) error {
	if e.changed("pool") {
		n.Pool = e.pool
	}
	switch {
	case !e.changed("ip"):
	case e.addr.Is6():
		n.IP6 = e.addr
	default:
		n.IP = e.addr
	}
	if e.changed("mac") {
		n.MACs = e.parsed
	}
	if e.changed("tag") {
		n.Tags = slices.DeleteFunc(slices.Clone(e.tags), func(s string) bool { return s == "" })
	}
	for _, tag := range e.addTags {
		if !slices.Contains(n.Tags, tag) {
			n.Tags = append(n.Tags, tag)
		}
	}
	n.Tags = slices.DeleteFunc(n.Tags, func(s string) bool { return slices.Contains(e.rmTag, s) })
	if e.changed("ignore") {
		n.Ignore = e.ignore
	}
	return nil
}

func newMoveCommand(c *cli.Client) *cobra.Command {
	ch := &change{api: c}
	var pool string
	cmd := &cobra.Command{
		Use:   "move NAME... --pool POOL",
		Short: "Give nodes to another pool, all in one step",
		Long: `Move gives nodes to another pool, and so to its image, cluster and tags. A node that
runs leaves its cluster as docs/clusters.md says, and gets the rest at its next boot.`,
		Example: `  drover node move m1c3[0-9] --pool web
  drover node move m1c30 --pool web --dry-run`,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if pool == "" {
				return &cli.Error{Code: cli.Usage, Err: errors.New("--pool is missing: where do they go?")}
			}
			return ch.run(cmd, args, func(n *pools.PoolNode) error { n.Pool = pool; return nil })
		},
	}
	cmd.Flags().StringVar(&pool, "pool", "", "the pool that they go to")
	ch.flags(cmd, true)
	return cmd
}

func newRenameCommand(c *cli.Client) *cobra.Command {
	ch := &change{api: c}
	cmd := &cobra.Command{
		Use:   "rename OLD NEW",
		Short: "Rename a node, in one step",
		Long: `Rename gives a node another name. Its MACs, address, boots and next boot stay with it.
A machine that runs keeps the old host name, and its Node in the cluster, until it boots.`,
		Example: "  drover node rename m1c30 storage-1\n  drover node rename m1c30 storage-1 --dry-run",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !isOne(args[0]) {
				return &cli.Error{Code: cli.Usage, Err: fmt.Errorf("%q: rename is for one node", args[0])}
			}
			return ch.run(cmd, args[:1], func(n *pools.PoolNode) error { n.Name = args[1]; return nil })
		},
	}
	ch.flags(cmd, false)
	return cmd
}
