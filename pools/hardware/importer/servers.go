package importer

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"drover/pools"
	"drover/pools/hardware/redfish"
)

// NamedServer is a server and the address of its iLO.
type NamedServer struct {
	Host string
	redfish.Server
}

// CompareServers returns the changes from the stored nodes to servers with an iLO of
// their own. name is a template over .Serial, .UUID and .Host. Its result becomes lower
// case. No change is [Missing], because a list of servers need not be complete.
func CompareServers(servers []NamedServer, name, pool string, tags []string, stored Stored) ([]Change, error) {
	t, err := pools.ParseTemplate("name", name)
	if err != nil {
		return nil, err
	}
	d := newDiff(stored)
	var imported []ImportedNode
	first := map[string]string{}
	for _, s := range servers {
		var b bytes.Buffer
		if err := t.Execute(&b, struct{ Serial, UUID, Host string }{s.ID(), s.UUID, s.Host}); err != nil {
			return nil, fmt.Errorf("name template: %w (it knows .Serial, .UUID and .Host)", err)
		}
		label := strings.ToLower(b.String())
		switch {
		case !isLabel(label):
			return nil, fmt.Errorf("%s: the name template gives %q, which is no DNS label (use a-z, 0-9 and '-', 63 at most)", s.Host, label)
		case first[label] != "":
			return nil, fmt.Errorf("%s and %s would both be named %q (are they one iLO?)", first[label], s.Host, label)
		}
		first[label] = s.Host
		imported = append(imported, ImportedNode{PoolNode: pools.PoolNode{Pool: pool, Node: pools.Node{Name: label, MACs: s.MACs, Tags: tags}}})
	}
	d.compare(imported)
	slices.SortStableFunc(d.changes, func(a, b Change) int { return cmp.Compare(a.Name, b.Name) })
	return d.changes, nil
}
