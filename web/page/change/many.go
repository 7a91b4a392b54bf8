package change

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"drover/migrate/nodefile"
	"drover/pools"
	"drover/pools/adopt"
	"drover/pools/config/mistake"
	"drover/web/answer"
	"drover/web/page/table"
	"drover/web/page/text"
)

// adoptFields are the inputs for nodes that are made of unknown machines.
func adoptFields(f *Form) []Field {
	return []Field{
		{Name: "pool", Label: "Pool", Kind: "choice", Required: true, Options: f.mayPools()},
		{Name: "name", Label: "Names", Kind: "text", Value: "node-{{.MAC}}", Required: true, Hint: "with {{.Index}}, {{.MAC}}, {{.Circuit}} or {{.Remote}}: what the relay agent calls its port and its switch"},
		{Name: "first", Label: "First index", Kind: "text", Value: "1", Hint: "in the order of the MACs"},
		{Name: "addresses", Label: "Addresses", Kind: "choice", Value: "auto", Required: true, Options: []table.Pair{
			{Name: "auto", Value: "the lowest free ones of the networks that they asked from"}, {Name: "none", Value: "none"},
		}},
		{Name: "tags", Label: "Tags", Kind: "text", Hint: "beside those of the pool", Options: tagNames(f)},
	}
}

func planAdopt(f *Form) error {
	rule, err := f.rule()
	if err != nil {
		return err
	}
	seen := map[pools.MAC]pools.Unknown{}
	for _, u := range f.Shared.Unknowns {
		seen[u.MAC] = u
	}
	var machines []pools.Unknown
	for _, pick := range f.Picks {
		mac, err := pools.ParseMAC(pick)
		u, ok := seen[mac]
		switch {
		case err != nil:
			f.refuse(pick, answer.BadRequest("%v", err))
		case !ok:
			f.refuse(pick, answer.NotFound("no unknown machine has the MAC %s", mac))
		default:
			machines = append(machines, u)
		}
	}
	nodes, err := rule.Nodes(machines)
	if err != nil {
		return answer.BadRequest("%v", err)
	}
	f.Next = "/nodes"
	return f.addAll(nodes)
}

// rule returns what the inputs say about the nodes.
func (f *Form) rule() (*adopt.Rule, error) {
	r := &adopt.Rule{Pool: f.value("pool"), Tags: words(f.value("tags")), First: 1, Name: nameBy(strings.TrimSpace(f.value("name")))}
	if r.Pool == "" {
		return nil, answer.BadRequest("choose a pool")
	}
	if s := strings.TrimSpace(f.value("first")); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 0 {
			return nil, answer.BadRequest("first index: %q is not a number", s)
		}
		r.First = n
	}
	if f.value("addresses") != "none" {
		r.Free = f.free()
	}
	return r, nil
}

// free returns the function that returns free addresses, which looks for those of a network
// once: each machine has a link of its own.
func (f *Form) free() func(string, int) ([]netip.Addr, error) {
	of := map[netip.Prefix][]netip.Addr{}
	return func(link string, n int) ([]netip.Addr, error) {
		at, _ := netip.ParseAddr(link) // none is the only network
		s, ok := f.Shared.Farm.SubnetOfLink(at)
		if all, asked := of[s.CIDR]; ok && asked {
			return all, nil
		}
		all, err := f.API.FreeAddresses(link, n)
		if ok && err == nil {
			of[s.CIDR] = all
		}
		return all, err
	}
}

// nameBy returns the function that makes names by a template: drover unknown adopt has the same
// words. It executes nothing.
func nameBy(template string) func(*pools.Unknown, int) (string, error) {
	return func(u *pools.Unknown, number int) (string, error) {
		name := strings.NewReplacer("{{.Index}}", strconv.Itoa(number), "{{.MAC}}", u.MAC.Hex(), "{{.Circuit}}", u.Circuit, "{{.Remote}}", u.Remote).Replace(template)
		if strings.Contains(name, "{{") {
			return "", fmt.Errorf("names: %q has other words than {{.Index}}, {{.MAC}}, {{.Circuit}} and {{.Remote}}", template)
		}
		return name, nil
	}
}

// listFields are the inputs for many nodes.
func listFields(f *Form) []Field {
	return []Field{
		{Name: "pool", Label: "Pool", Kind: "choice", Options: f.mayPools(), Hint: "of nodes that name none"},
		{Name: "nodes", Label: "Nodes", Kind: "lines", Required: true, Value: "name,mac,ip\n", Hint: "a table whose first line names its columns: name, pool, mac, ip, ip6, tags, ignore; or YAML with a list nodes, as drover export --format nodes prints it"},
	}
}

func planList(f *Form) error {
	data := []byte(f.value("nodes"))
	file := "nodes.csv"
	if list, err := nodefile.IsList("nodes.yaml", data); list || err != nil && bytes.Contains(data, []byte("nodes:")) {
		file = "nodes.yaml" // Read has the error
	}
	entries, err := nodefile.Read(file, data)
	if err != nil {
		if _, ok := errors.AsType[mistake.Errors](err); !ok {
			err = answer.BadRequest("%v", err)
		}
		return err
	}
	var nodes []pools.PoolNode
	for _, e := range entries {
		if e.Node.Pool == "" {
			e.Node.Pool = f.value("pool")
		}
		if e.Node.Pool == "" {
			return answer.BadRequest("%s: node %q has no pool: choose one", e.Position(), e.Node.Name)
		}
		nodes = append(nodes, e.Node)
	}
	return f.addAll(nodes)
}

// addAll plans to add nodes, all of them or none.
func (f *Form) addAll(nodes []pools.PoolNode) error {
	if len(nodes) == 0 {
		return nil
	}
	var all []pools.NodeChange
	for i := range nodes {
		n := &nodes[i]
		f.act(n.Name, text.Differences(&pools.PoolNode{}, n)...)
		all = append(all, pools.NodeChange{New: n})
	}
	f.together(func() error { return f.API.ChangeNodes(all, f.Client) })
	return f.API.CheckNodes(all, f.Client)
}
