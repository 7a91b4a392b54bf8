// Package status has the command drover status: the farm of a running server on one screen.
// It asks the REST API, and counts and prints what that tells.
package status

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/pools"
	"drover/pools/natural"
	"drover/pools/printable"
)

// Overview is a farm at a moment.
type Overview struct {
	Ready    bool           `json:"ready"`
	Problems []Problem      `json:"problems"` // of the server: /readyz
	Nodes    map[string]int `json:"nodes"`    // by state
	Pools    []Pool         `json:"pools"`
	Stuck    []Cause        `json:"stuck"`
	Images   map[string]int `json:"images"` // nodes by the image of their last boot
	Leases   map[string]int `json:"leases"` // by state
	Unknown  int            `json:"unknown"`
}

// Problem is a part of the server that is not ready.
type Problem struct {
	Part    string `json:"part"`
	Problem string `json:"problem"`
	Warning bool   `json:"warning,omitempty"`
}

// Pool is the nodes of a pool by their state.
type Pool struct {
	Name   string         `json:"name"`
	Nodes  int            `json:"nodes"`
	States map[string]int `json:"states"`
}

// Cause is why nodes are stuck.
type Cause struct {
	Cause string   `json:"cause"`
	Nodes []string `json:"nodes"`
}

// NewCommand returns the command drover status.
func NewCommand() *cobra.Command {
	c := &cli.Client{}
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the farm of a running server on one screen",
		Long: `Status shows the nodes by state and pool, the stuck ones by cause, images, leases, unknown
machines, and what is not ready in the server: config, clusters, images, loaders, disks.
It fails if the server is not ready.`,
		Example: "  drover status\n  drover status -o json",
		Args:    cobra.NoArgs,
	}
	var output cli.Output
	output.Flag(cmd, "text", "json", "yaml")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		o, err := look(cmd.Context(), c)
		if err != nil {
			return err
		}
		if err := output.Print(cmd, o, o.text); err != nil {
			return err
		}
		if !o.Ready {
			return errors.New("the server is not ready")
		}
		return nil
	}
	c.Flags(cmd)
	return cmd
}

// look asks the server.
func look(ctx context.Context, c *cli.Client) (*Overview, error) {
	o := &Overview{Nodes: map[string]int{}, Images: map[string]int{}, Leases: map[string]int{}, Pools: []Pool{}, Stuck: []Cause{}, Problems: []Problem{}}
	nodes, err := cli.Get[[]pools.NodeInfo](ctx, c, cli.NodesPath, "catchall", "true")
	if err != nil {
		return nil, err
	}
	o.count(nodes)
	leases, err := cli.Get[[]pools.LeaseInfo](ctx, c, cli.LeasesPath)
	if err != nil {
		return nil, err
	}
	for _, l := range leases {
		o.Leases[string(l.State)]++
	}
	unknown, err := cli.Get[[]pools.Unknown](ctx, c, "/api/v1/unknown")
	if err != nil {
		return nil, err
	}
	o.Unknown = len(unknown)
	var ready struct {
		Ready    bool
		Problems []Problem
	}
	if err := c.CallAccepting(ctx, http.MethodGet, "/readyz", http.StatusServiceUnavailable, &ready); err != nil {
		return nil, err
	}
	o.Ready, o.Problems = ready.Ready, append(o.Problems, ready.Problems...)
	return o, nil
}

// count counts the nodes.
func (o *Overview) count(nodes []pools.NodeInfo) {
	byPool, causes := map[string]*Pool{}, map[string][]string{}
	for _, n := range nodes {
		s := n.Status
		if s == nil {
			s = &pools.NodeStatus{State: pools.NodeNew}
		}
		p := byPool[n.Pool]
		if p == nil {
			p = &Pool{Name: n.Pool, States: map[string]int{}}
			byPool[n.Pool] = p
		}
		p.Nodes++
		p.States[string(s.State)]++
		o.Nodes[string(s.State)]++
		if s.Image != "" {
			o.Images[s.Image]++
		}
		if s.State == pools.NodeStuck {
			causes[s.Detail] = append(causes[s.Detail], n.Name)
		}
	}
	for _, name := range slices.SortedFunc(maps.Keys(byPool), natural.Compare) {
		o.Pools = append(o.Pools, *byPool[name])
	}
	for cause, names := range causes {
		slices.SortFunc(names, natural.Compare)
		o.Stuck = append(o.Stuck, Cause{cause, names})
	}
	slices.SortFunc(o.Stuck, func(a, b Cause) int { return cmp.Or(len(b.Nodes)-len(a.Nodes), cmp.Compare(a.Cause, b.Cause)) })
}

// What fits on a screen.
const (
	maxPools  = 15
	maxCauses = 5
	maxNames  = 5
)

func (o *Overview) text(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(name, text string) { fmt.Fprintf(t, "%s\t%s\n", name, cli.OrDash(printable.Text(text))) }
	total := 0
	for _, n := range o.Nodes {
		total += n
	}
	ready := map[bool]string{true: "ready", false: "not ready"}[o.Ready]
	line("server", ready)
	line("nodes", fmt.Sprintf("%d: %s", total, states(o.Nodes)))
	for _, p := range o.Pools[:min(len(o.Pools), maxPools)] {
		line("pool "+printable.Text(p.Name), fmt.Sprintf("%d: %s", p.Nodes, states(p.States)))
	}
	if n := len(o.Pools) - maxPools; n > 0 {
		line("", fmt.Sprintf("and %d more pools", n))
	}
	for _, c := range o.Stuck[:min(len(o.Stuck), maxCauses)] {
		names := strings.Join(c.Nodes[:min(len(c.Nodes), maxNames)], " ")
		if len(c.Nodes) > maxNames {
			names += " ..."
		}
		line("stuck", fmt.Sprintf("%d %s: %s", len(c.Nodes), c.Cause, names))
	}
	line("images", states(o.Images))
	line("leases", states(o.Leases))
	line("unknown machines", fmt.Sprint(o.Unknown))
	for _, p := range o.Problems {
		kind := map[bool]string{true: "warning", false: "problem"}[p.Warning]
		line(kind, p.Part+": "+p.Problem)
	}
	return t.Flush()
}

// states returns counts as text, by name.
func states(counts map[string]int) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		words = append(words, fmt.Sprintf("%d %s", counts[name], name))
	}
	return strings.Join(words, ", ")
}
