package complete

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/cmd/drover/cli/contexts"
	"drover/imagebuild"
	"drover/pools"
	"drover/pools/config/include"
	"drover/pools/resolve"
	"drover/web/client"
)

// nodeRules and powerRules are the keys of selectors, with the sources of their values.
var (
	nodeRules = map[string]source{
		"pool": poolNames, "tag": tagNames, "cluster": clusterNames, "image": imageNames, "state": states,
		"power": fixed("on", "off", "unknown"), "from": fixed("config", "api", "chassis", "catch-all"),
	}
	powerRules = map[string]source{"pool": poolNames, "tag": tagNames, "chassis": chassisNames}
)

func fixed(words ...string) source {
	return func(context.Context, *cobra.Command) []string { return words }
}

func states(context.Context, *cobra.Command) (out []string) {
	for _, s := range pools.NodeStates() {
		out = append(out, string(s))
	}
	return out
}

// nodes returns the nodes of the server; without one those of the config file.
func nodes(ctx context.Context, cmd *cobra.Command) []pools.NodeInfo {
	if c := cli.ClientOf(cmd); c != nil {
		all, err := cli.Get(ctx, c, client.Nodes, "catchall", "true")
		if err == nil {
			return all
		}
	}
	var all []pools.NodeInfo
	for _, p := range fileOf(cmd).Pools {
		for _, n := range p.Nodes {
			all = append(all, pools.NodeInfo{PoolNode: pools.PoolNode{Node: n, Pool: p.Name}})
		}
	}
	return all
}

func nodeNames(ctx context.Context, cmd *cobra.Command) (out []string) {
	for _, n := range nodes(ctx, cmd) {
		out = append(out, n.Name+"\t"+n.Pool)
	}
	return out
}

func retiredNames(ctx context.Context, cmd *cobra.Command) (out []string) {
	c := cli.ClientOf(cmd)
	if c == nil {
		return nil
	}
	all, _ := cli.Get(ctx, c, client.Retired) // none, without a server
	for i := range all {
		out = append(out, all[i].Name+"\t"+all[i].Pool)
	}
	return out
}

func nodeMACs(ctx context.Context, cmd *cobra.Command) (out []string) {
	for _, n := range nodes(ctx, cmd) {
		for _, m := range n.MACs {
			out = append(out, m.String()+"\t"+n.Name)
		}
	}
	return out
}

func configNumbers(ctx context.Context, cmd *cobra.Command) (out []string) {
	c := cli.ClientOf(cmd)
	if c == nil {
		return nil
	}
	all, _ := cli.Get(ctx, c, client.ConfigHistory) // none, without a server
	for _, e := range all {
		out = append(out, fmt.Sprintf("%d\t%s %s", e.Number, e.Time.UTC().Format(time.DateTime), e.Way))
	}
	return out
}

// fileOf returns the sections of the config file of a command.
func fileOf(cmd *cobra.Command) pools.Config {
	path := cli.DefaultConfig
	if f := cmd.Flag("config"); f != nil && f.Value.String() != "" {
		path = f.Value.String()
	}
	text, err := include.Read(path)
	if err != nil {
		return pools.Config{}
	}
	var c resolve.Checked
	_ = text.Decode(&c) // what it has of a file with mistakes will do
	return c.Config
}

// listed returns the names that the server lists at a path, and without one those that its
// config file has. Any token may read the list, not so the config.
func listed(path string, inFile func(*pools.Config) []string) source {
	return func(ctx context.Context, cmd *cobra.Command) (out []string) {
		if c := cli.ClientOf(cmd); c != nil {
			all, err := cli.Get(ctx, c, client.Path[[]struct{ Name string }](path))
			if err == nil {
				for _, e := range all {
					out = append(out, e.Name)
				}
				return out
			}
		}
		file := fileOf(cmd)
		return inFile(&file)
	}
}

func poolNames(ctx context.Context, cmd *cobra.Command) []string {
	return listed(string(client.Pools), func(c *pools.Config) (out []string) {
		for _, p := range c.Pools {
			out = append(out, p.Name)
		}
		return out
	})(ctx, cmd)
}

func tagNames(ctx context.Context, cmd *cobra.Command) []string {
	return listed(string(client.Tags), func(c *pools.Config) []string { return slices.Collect(maps.Keys(c.Tags)) })(ctx, cmd)
}

func clusterNames(ctx context.Context, cmd *cobra.Command) []string {
	return listed(string(client.Clusters), func(c *pools.Config) (out []string) {
		for _, x := range c.Clusters {
			out = append(out, x.Name)
		}
		return out
	})(ctx, cmd)
}

func chassisNames(ctx context.Context, cmd *cobra.Command) []string {
	return listed(string(client.Chassis), func(c *pools.Config) (out []string) {
		for _, x := range c.Chassis {
			out = append(out, x.Name)
		}
		return out
	})(ctx, cmd)
}

func contextNames(context.Context, *cobra.Command) (out []string) {
	all, _ := contexts.Load() // none of a file that cannot be read
	for _, x := range all.All {
		out = append(out, x.Name+"\t"+x.URL)
	}
	return out
}

// apiTokenNames returns the named tokens of the API.
func apiTokenNames(ctx context.Context, cmd *cobra.Command) (out []string) {
	c := cli.ClientOf(cmd)
	if c == nil {
		return nil
	}
	all, err := cli.Get(ctx, c, client.Tokens)
	if err != nil {
		return nil
	}
	for _, t := range all {
		out = append(out, t.Name+"\t"+string(t.Role))
	}
	return out
}

func hostNames(_ context.Context, cmd *cobra.Command) (out []string) {
	for _, c := range fileOf(cmd).Clusters {
		for _, h := range c.Hosts {
			out = append(out, h.Name+"\t"+c.Name)
		}
	}
	return out
}

// imageNames returns the images of the host, and those that pools have.
func imageNames(ctx context.Context, cmd *cobra.Command) (out []string) {
	dir := cli.DefaultState + "/images"
	if f := cmd.Flag("images"); f != nil && f.Value.String() != "" {
		dir = f.Value.String()
	}
	all, _ := imagebuild.Open(dir).List() // the good ones
	for _, i := range all {
		out = append(out, i.Name)
	}
	if c := cli.ClientOf(cmd); c != nil {
		of, err := cli.Get(ctx, c, client.Pools)
		for _, p := range of {
			out = append(out, p.Image)
		}
		if err == nil {
			return out
		}
	}
	for _, p := range fileOf(cmd).Pools {
		out = append(out, p.Image)
	}
	return out
}

func nextBoots(ctx context.Context, cmd *cobra.Command) []string {
	out := []string{"local", "rescue", "clear"}
	for _, name := range imageNames(ctx, cmd) {
		if name != "" {
			out = append(out, "image="+name)
		}
	}
	return out
}

func leaseAddresses(ctx context.Context, cmd *cobra.Command) (out []string) {
	all, _ := cli.Get(ctx, cli.ClientOf(cmd), client.Leases)
	for _, l := range all {
		out = append(out, l.Address.String()+"\t"+l.Node)
	}
	return out
}

func unknownMACs(ctx context.Context, cmd *cobra.Command) (out []string) {
	all, _ := cli.Get(ctx, cli.ClientOf(cmd), client.Unknown)
	for _, u := range all {
		out = append(out, u.MAC.String()+"\t"+u.Class)
	}
	return out
}
