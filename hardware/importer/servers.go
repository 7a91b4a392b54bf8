package importer

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"drover/hardware/redfish"
	"drover/pools"
)

// NamedServer is a server and the address of its iLO.
type NamedServer struct {
	Host string
	redfish.Server
}

// CompareServers returns the changes from the stored nodes to servers with an iLO of
// their own. name is a template over .Serial, .UUID and .Host. Its result becomes lower
// case. A server without a valid name of its own is in failed, and does not affect the
// others. No change is [Missing], because a list of servers need not be complete.
func CompareServers(servers []NamedServer, name, pool string, tags []string, stored Stored) (changes []Change, failed []error, err error) {
	t, err := pools.ParseTemplate("name", name)
	if err != nil {
		return nil, nil, err
	}
	labels, hosts := make([]string, len(servers)), map[string][]string{}
	for i, s := range servers {
		var b bytes.Buffer
		if err := t.Execute(&b, struct{ Serial, UUID, Host string }{s.ID(), s.UUID, s.Host}); err != nil {
			return nil, nil, fmt.Errorf("name template: %w (it knows .Serial, .UUID and .Host)", err)
		}
		labels[i] = strings.ToLower(b.String())
		hosts[labels[i]] = append(hosts[labels[i]], s.Host)
	}
	d := newDiff(stored)
	var imported []ImportedNode
	for i, s := range servers {
		label := labels[i]
		switch same := hosts[label]; {
		case !isLabel(label):
			failed = append(failed, fmt.Errorf("%s: the name template gives %.80q, which is no DNS label (use a-z, 0-9 and '-', 63 at most)", s.Host, label))
		case len(same) == 1:
			imported = append(imported, ImportedNode{PoolNode: pools.PoolNode{Pool: pool, Node: pools.Node{Name: label, MACs: s.MACs, Tags: tags}}})
		case same[0] == s.Host:
			failed = append(failed, fmt.Errorf("%s would all be named %q (are they one iLO?)", strings.Join(same, ", "), label))
		}
	}
	d.compare(imported)
	slices.SortStableFunc(d.changes, func(a, b Change) int { return cmp.Compare(a.Name, b.Name) })
	return d.changes, failed, nil
}
