package change

import (
	"encoding/json"
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
func nodeFields(f *Form, n *pools.PoolNode) []Field {
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
	return []Field{
		{Name: "name", Label: "Name", Value: n.Name, Kind: "text", Required: true},
		{Name: "pool", Label: "Pool", Value: n.Pool, Kind: "choice", Required: true, Options: f.mayPools()},
		{Name: "macs", Label: "MACs", Value: strings.Join(macs, " "), Kind: "text", Hint: "of all its network cards"},
		{Name: "ip", Label: "IPv4 address", Value: address(n.IP), Kind: "text"},
		{Name: "ip6", Label: "IPv6 address", Value: address(n.IP6), Kind: "text"},
		{Name: "tags", Label: "Tags", Value: strings.Join(n.Tags, " "), Kind: "text", Hint: "beside those of the pool", Options: tagNames(f)},
		{Name: "ignore", Label: "Ignore", Value: ignore, Kind: "check", Hint: "it gets no answer"},
	}
}

func addFields(f *Form) []Field {
	n := pools.PoolNode{}
	if len(f.Picks) == 1 {
		if mac, err := pools.ParseMAC(f.Picks[0]); err == nil {
			n.MACs = []pools.MAC{mac}
		}
	}
	f.Title, f.Back = "Add a node", "/nodes"
	if len(n.MACs) > 0 {
		f.Back = "/unknown"
	} else {
		f.Other = &table.Link{Text: "Add several", URL: "/change?do=list"}
	}
	return nodeFields(f, &n)
}

func editFields(f *Form) []Field {
	n, ok := f.Shared.Farm.Node(f.Picks[0])
	if !ok || !f.may(n.Pool) {
		return nil
	}
	return nodeFields(f, &n.PoolNode)
}

// words returns the words of an input.
func words(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(" ,\n\r\t", r) })
}

// node returns the node of the inputs, with everything else as in old. It is decoded as
// strictly as a node of the API.
func (f *Form) node(old pools.PoolNode) (n pools.PoolNode, err error) {
	data, err := json.Marshal(old)
	v := map[string]any{}
	if err == nil {
		err = json.Unmarshal(data, &v)
	}
	for _, name := range []string{"name", "pool", "ip", "ip6"} {
		if v[name] = strings.TrimSpace(f.value(name)); v[name] == "" {
			delete(v, name)
		}
	}
	for _, name := range []string{"macs", "tags"} {
		if v[name] = words(f.value(name)); len(words(f.value(name))) == 0 {
			delete(v, name)
		}
	}
	if delete(v, "ignore"); f.value("ignore") != "" {
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

func planAdd(f *Form) error {
	n, err := f.node(pools.PoolNode{})
	if err != nil {
		return err
	}
	f.act(n.Name, text.Differences(&pools.PoolNode{}, &n)...)
	f.Next = table.NodePath(n.Name)
	f.together(func() error { return f.API.AddNode(n, f.Client) })
	return f.API.CheckNodes([]pools.NodeChange{{New: &n}}, f.Client)
}

func planEdit(f *Form) error {
	return f.planNodes(func(old pools.PoolNode) (*pools.PoolNode, error) {
		n, err := f.node(old)
		f.Next = table.NodePath(n.Name)
		return &n, err
	})
}

func moveFields(f *Form) []Field {
	return []Field{{Name: "pool", Label: "To pool", Kind: "choice", Required: true, Options: f.mayPools()}}
}

func planMove(f *Form) error {
	pool := f.value("pool")
	if pool == "" {
		return answer.BadRequest("choose a pool")
	}
	return f.planNodes(func(n pools.PoolNode) (*pools.PoolNode, error) {
		n.Pool = pool
		return &n, nil
	})
}

// tagNames returns the tags that the client may use.
func tagNames(f *Form) (names []table.Pair) {
	for _, tag := range f.API.Tags(f.Client) {
		if tag.Name != "all" {
			names = append(names, table.Pair{Name: tag.Name, Value: tag.Name})
		}
	}
	return names
}

func tagFields(f *Form) []Field {
	return []Field{
		{Name: "add", Label: "Add tags", Kind: "text", Options: tagNames(f)},
		{Name: "remove", Label: "Take away tags", Kind: "text", Hint: "those of the pool stay", Options: tagNames(f)},
	}
}

func planTag(f *Form) error {
	add, remove := words(f.value("add")), words(f.value("remove"))
	if len(add)+len(remove) == 0 {
		return answer.BadRequest("name a tag")
	}
	return f.planNodes(func(n pools.PoolNode) (*pools.PoolNode, error) {
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

func planRemove(f *Form) error {
	f.Next = "/nodes"
	return f.planNodes(func(pools.PoolNode) (*pools.PoolNode, error) { return nil, nil })
}

// planNodes sets the preview of an edit of all nodes that are chosen. Nodes that the file
// declares stay as they are. An edit to nil removes a node.
func (f *Form) planNodes(edit func(pools.PoolNode) (*pools.PoolNode, error)) error {
	var all []pools.NodeChange
	for _, name := range f.Picks {
		info, ok := f.Shared.Farm.Node(name)
		switch {
		case !ok:
			f.refuse(name, answer.NotFound("there is no such node"))
			continue
		case info.Declared():
			f.refuse(name, answer.BadRequest("declared in %s: change it there", answer.Where(info.Source)))
			continue
		case !f.may(info.Pool):
			f.refuse(name, f.Client.May(info.Pool))
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
			f.refuse(name, answer.BadRequest("it is so already"))
			continue
		}
		f.act(name, lines...)
		all = append(all, pools.NodeChange{Old: &old, New: changed})
	}
	if len(all) == 0 {
		return nil
	}
	f.together(func() error { return f.API.ChangeNodes(all, f.Client) })
	return f.API.CheckNodes(all, f.Client)
}
