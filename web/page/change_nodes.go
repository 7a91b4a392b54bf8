package page

import (
	"context"
	"encoding/json"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"drover/pools"
	"drover/pools/config/decode"
	"drover/web/answer"
	"drover/web/page/table"
	"drover/web/page/text"
)

// nodeFields returns the inputs for a node, with the values of n.
func nodeFields(c *change, n *pools.PoolNode) []field {
	address := func(a netip.Addr) string {
		if !a.IsValid() {
			return ""
		}
		return a.String()
	}
	var macs []string
	for _, m := range n.MACs {
		macs = append(macs, m.String())
	}
	ignore := ""
	if n.Ignore {
		ignore = "yes"
	}
	return []field{
		{Name: "name", Label: "Name", Value: n.Name, Kind: "text", Required: true},
		{Name: "pool", Label: "Pool", Value: n.Pool, Kind: "choice", Required: true, Options: c.mayPools()},
		{Name: "macs", Label: "MACs", Value: strings.Join(macs, " "), Kind: "text", Hint: "of all its network cards"},
		{Name: "ip", Label: "IPv4 address", Value: address(n.IP), Kind: "text"},
		{Name: "ip6", Label: "IPv6 address", Value: address(n.IP6), Kind: "text"},
		{Name: "tags", Label: "Tags", Value: strings.Join(n.Tags, " "), Kind: "text", Hint: "beside those of the pool", Options: tagNames(c)},
		{Name: "ignore", Label: "Ignore", Value: ignore, Kind: "check", Hint: "it gets no answer"},
	}
}

func addFields(_ *page, c *change) []field {
	n := pools.PoolNode{}
	if len(c.Picks) == 1 {
		if mac, err := pools.ParseMAC(c.Picks[0]); err == nil {
			n.MACs = []pools.MAC{mac}
		}
	}
	c.Title, c.Back = "Add a node", "/nodes"
	if len(n.MACs) > 0 {
		c.Back = "/unknown"
	}
	return nodeFields(c, &n)
}

func editFields(_ *page, c *change) []field {
	n, ok := c.Farm.Node(c.Picks[0])
	if !ok {
		return nil
	}
	return nodeFields(c, &n.PoolNode)
}

// words returns the words of an input.
func words(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(" ,\n\r\t", r) })
}

// node returns the node of the inputs, with everything else as in old. It is decoded as
// strictly as a node of the API.
func (c *change) node(old pools.PoolNode) (n pools.PoolNode, err error) {
	data, err := json.Marshal(old)
	v := map[string]any{}
	if err == nil {
		err = json.Unmarshal(data, &v)
	}
	for _, name := range []string{"name", "pool", "ip", "ip6"} {
		if v[name] = strings.TrimSpace(c.value(name)); v[name] == "" {
			delete(v, name)
		}
	}
	for _, name := range []string{"macs", "tags"} {
		if v[name] = words(c.value(name)); len(words(c.value(name))) == 0 {
			delete(v, name)
		}
	}
	if delete(v, "ignore"); c.value("ignore") != "" {
		v["ignore"] = true
	}
	switch {
	case err != nil:
	case v["name"] == nil:
		err = answer.BadRequest("the node has no name")
	case v["pool"] == nil:
		err = answer.BadRequest("choose a pool")
	default:
		if data, err = json.Marshal(v); err == nil {
			err = decode.JSON(data, &n)
		}
	}
	return n, err
}

func planAdd(p *page, c *change) error {
	n, err := c.node(pools.PoolNode{})
	if err != nil {
		return err
	}
	c.act(n.Name, text.Differences(&pools.PoolNode{}, &n)...)
	c.next = table.NodePath(n.Name)
	c.apply = func(context.Context) error { return p.api.AddNode(n, c.client) }
	return p.api.CheckNodes([]pools.NodeChange{{New: &n}}, c.client)
}

func planEdit(p *page, c *change) error {
	return p.planNodes(c, func(old pools.PoolNode) (*pools.PoolNode, error) {
		n, err := c.node(old)
		c.next = table.NodePath(n.Name)
		return &n, err
	})
}

func moveFields(_ *page, c *change) []field {
	return []field{{Name: "pool", Label: "To pool", Kind: "choice", Required: true, Options: c.mayPools()}}
}

func planMove(p *page, c *change) error {
	pool := c.value("pool")
	if pool == "" {
		return answer.BadRequest("choose a pool")
	}
	return p.planNodes(c, func(n pools.PoolNode) (*pools.PoolNode, error) {
		n.Pool = pool
		return &n, nil
	})
}

// tagNames returns the tags of the config.
func tagNames(c *change) (names []table.Pair) {
	for _, name := range slices.Sorted(maps.Keys(c.Farm.Config.Tags)) {
		if name != "all" {
			names = append(names, table.Pair{Name: name, Value: name})
		}
	}
	return names
}

func tagFields(_ *page, c *change) []field {
	return []field{
		{Name: "add", Label: "Add tags", Kind: "text", Options: tagNames(c)},
		{Name: "remove", Label: "Take away tags", Kind: "text", Hint: "those of the pool stay", Options: tagNames(c)},
	}
}

func planTag(p *page, c *change) error {
	add, remove := words(c.value("add")), words(c.value("remove"))
	if len(add)+len(remove) == 0 {
		return answer.BadRequest("name a tag")
	}
	return p.planNodes(c, func(n pools.PoolNode) (*pools.PoolNode, error) {
		tags := slices.DeleteFunc(slices.Clone(n.Tags), func(tag string) bool { return slices.Contains(remove, tag) })
		for _, tag := range add {
			if !slices.Contains(tags, tag) {
				tags = append(tags, tag)
			}
		}
		n.Tags = tags
		return &n, nil
	})
}

func planRemove(p *page, c *change) error {
	c.next = "/nodes"
	return p.planNodes(c, func(pools.PoolNode) (*pools.PoolNode, error) { return nil, nil })
}

// planNodes sets the preview of an edit of all nodes that are chosen. Nodes that the file
// declares stay as they are. An edit to nil removes a node.
func (p *page) planNodes(c *change, edit func(pools.PoolNode) (*pools.PoolNode, error)) error {
	var all []pools.NodeChange
	for _, name := range c.Picks {
		info, ok := c.Farm.Node(name)
		switch {
		case !ok:
			c.refuse(name, "there is no such node")
			continue
		case info.Declared():
			c.refuse(name, "declared in "+answer.Where(info.Source)+": change it there")
			continue
		case !c.may(info.Pool):
			c.refuse(name, c.client.May(info.Pool).Error())
			continue
		}
		old := info.PoolNode
		changed, err := edit(old)
		if err != nil {
			return err
		}
		lines := []string{"removed"}
		if changed != nil {
			lines = text.Differences(&old, changed)
		}
		if len(lines) == 0 {
			c.refuse(name, "it is so already")
			continue
		}
		c.act(name, lines...)
		all = append(all, pools.NodeChange{Old: &old, New: changed})
	}
	if len(all) == 0 {
		return nil
	}
	c.apply = func(context.Context) error { return p.api.ChangeNodes(all, c.client) }
	return p.api.CheckNodes(all, c.client)
}
