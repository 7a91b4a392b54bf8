package node

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"drover/cmd/drover/cli"
	"drover/internal/natural"
	"drover/pools"
	"drover/pools/config/mistake"
	"drover/web/client"
)

// found returns the nodes of the server that the selector chooses. That it chooses none is an
// error if a value in its rules is nowhere on the server: then it is a slip, and not an answer.
func (s *selector) found(ctx context.Context, c *cli.Client) ([]pools.NodeInfo, error) {
	nodes, err := s.nodes(ctx, c)
	if err != nil || len(nodes) > 0 {
		return nodes, err
	}
	rules, err := s.parse()
	if err != nil {
		return nil, err
	}
	for _, r := range rules {
		if r.value == "" || r.key == "state" || wordsOf[r.key] != nil { // those were checked before
			continue
		}
		known, err := knownValues(ctx, c, r.key)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(known, r.value) {
			hint := mistake.Hint(r.value, known, "drover node list shows all")
			return nil, &cli.Error{Code: cli.Usage, Err: fmt.Errorf("--selector: nothing has the %s %q (%s)", r.key, r.value, hint)}
		}
	}
	return nodes, nil
}

// Chosen returns the names of the nodes that rules choose, for other commands.
func Chosen(ctx context.Context, c *cli.Client, rules []string) ([]string, error) {
	sel := selector{rules: rules}
	nodes, err := sel.found(ctx, c)
	names := make([]string, len(nodes))
	for i := range nodes {
		names[i] = nodes[i].Name
	}
	return names, err
}

// knownValues returns the values that a key can have: those that nodes have, and those that the
// config names.
func knownValues(ctx context.Context, c *cli.Client, key string) ([]string, error) {
	var named []string
	var err error
	switch key {
	case "pool":
		named, err = namesOf(ctx, c, client.Pools, func(p *pools.PoolInfo) string { return p.Name })
	case "tag":
		named, err = namesOf(ctx, c, client.Tags, func(t *pools.TagInfo) string { return t.Name })
	case "cluster":
		named, err = namesOf(ctx, c, client.Clusters, func(k *pools.ClusterInfo) string { return k.Name })
	case "image":
		named, err = namesOf(ctx, c, client.Images, func(i *pools.ImageInfo) string { return i.Name })
	case "power":
		named = []string{"on", "off", "unknown"}
	}
	if err != nil {
		return nil, err
	}
	all, err := cli.Get(ctx, c, client.Nodes, "catchall", "true")
	if err != nil {
		return nil, err
	}
	values := map[string]bool{}
	for _, name := range named {
		values[name] = true
	}
	for i := range all {
		for _, v := range valuesOf[key](&all[i], statusOf(&all[i])) {
			values[v] = true
		}
	}
	delete(values, "")
	return slices.SortedFunc(maps.Keys(values), natural.Compare), nil
}

func namesOf[T any](ctx context.Context, c *cli.Client, path client.Path[[]T], name func(*T) string) ([]string, error) {
	all, err := cli.Get(ctx, c, path)
	names := make([]string, len(all))
	for i := range all {
		names[i] = name(&all[i])
	}
	return names, err
}
