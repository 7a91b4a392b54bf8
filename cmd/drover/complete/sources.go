package complete

import (
	"context"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/imagebuild"
	"drover/pools"
	"drover/pools/atomicfile"
	"drover/pools/config/decode"
)

// maxConfig bounds the config file that is read, in bytes.
const maxConfig = 16 << 20

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
		all, err := cli.Get[[]pools.NodeInfo](ctx, c, cli.NodesPath, "catchall", "true")
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

func nodeMACs(ctx context.Context, cmd *cobra.Command) (out []string) {
	for _, n := range nodes(ctx, cmd) {
		for _, m := range n.MACs {
			out = append(out, m.String()+"\t"+n.Name)
		}
	}
	return out
}

// farm returns the sections of the server's config, and without one of the file's. It may
// lack what has mistakes.
func farm(ctx context.Context, cmd *cobra.Command) pools.Config {
	if c := cli.ClientOf(cmd); c != nil {
		now, err := cli.Get[pools.ConfigInForce](ctx, c, "/api/v1/config")
		if err == nil {
			return parse(now.File, []byte(now.Content))
		}
	}
	return fileOf(cmd)
}

// fileOf returns the sections of the config file of a command.
func fileOf(cmd *cobra.Command) pools.Config {
	path := cli.DefaultConfig
	if f := cmd.Flag("config"); f != nil && f.Value.String() != "" {
		path = f.Value.String()
	}
	data, err := atomicfile.Read(path, maxConfig)
	if err != nil {
		return pools.Config{}
	}
	return parse(path, data)
}

func parse(file string, data []byte) (c pools.Config) {
	_, _ = decode.YAML(file, data, &c) // what it has of a file with mistakes will do
	return c
}

func poolNames(ctx context.Context, cmd *cobra.Command) (out []string) {
	for _, p := range farm(ctx, cmd).Pools {
		out = append(out, p.Name)
	}
	for _, n := range nodes(ctx, cmd) { // of objects, too
		out = append(out, n.Pool)
	}
	return out
}

func tagNames(ctx context.Context, cmd *cobra.Command) []string {
	out := slices.Collect(maps.Keys(farm(ctx, cmd).Tags))
	for _, n := range nodes(ctx, cmd) {
		out = append(out, n.Tags...)
		if n.Status != nil {
			out = append(out, n.Status.PoolTags...)
		}
	}
	return out
}

func clusterNames(ctx context.Context, cmd *cobra.Command) (out []string) {
	for _, c := range farm(ctx, cmd).Clusters {
		out = append(out, c.Name)
	}
	return out
}

func hostNames(ctx context.Context, cmd *cobra.Command) (out []string) {
	for _, c := range farm(ctx, cmd).Clusters {
		for _, h := range c.Hosts {
			out = append(out, h.Name+"\t"+c.Name)
		}
	}
	return out
}

func chassisNames(ctx context.Context, cmd *cobra.Command) (out []string) {
	for _, c := range farm(ctx, cmd).Chassis {
		out = append(out, c.Name)
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
	for _, p := range farm(ctx, cmd).Pools {
		out = append(out, p.Image)
	}
	return out
}

func nextBoots(ctx context.Context, cmd *cobra.Command) []string {
	out := []string{"local", "rescue", "clear"}
	for _, name := range imageNames(ctx, cmd) {
		out = append(out, "image="+name)
	}
	return out
}

func leaseAddresses(ctx context.Context, cmd *cobra.Command) (out []string) {
	all, _ := cli.Get[[]pools.LeaseInfo](ctx, cli.ClientOf(cmd), cli.LeasesPath)
	for _, l := range all {
		out = append(out, l.Address.String()+"\t"+l.Node)
	}
	return out
}

func unknownMACs(ctx context.Context, cmd *cobra.Command) (out []string) {
	all, _ := cli.Get[[]pools.Unknown](ctx, cli.ClientOf(cmd), "/api/v1/unknown")
	for _, u := range all {
		out = append(out, u.MAC.String()+"\t"+u.Class)
	}
	return out
}
