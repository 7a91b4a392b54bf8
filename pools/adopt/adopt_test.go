package adopt_test

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"drover/pools"
	"drover/pools/adopt"
)

// TestNodes: each machine gets a name with its number, and the next address of its network.
func TestNodes(t *testing.T) {
	machine := func(n byte, address, relay string) pools.Unknown {
		u := pools.Unknown{MAC: pools.MAC{2, 0, 0, 0, 0, n}}
		u.Address, _ = netip.ParseAddr(address)
		u.Relay, _ = netip.ParseAddr(relay)
		return u
	}
	asked := 0
	r := adopt.Rule{
		Pool: "web", Tags: []string{"fast"}, First: 7,
		Name: func(u *pools.Unknown, n int) (string, error) {
			if u.MAC[5] == 9 {
				return "", errors.New("no name")
			}
			return fmt.Sprint("m", n), nil
		},
		Free: func(link string, n int) (all []netip.Addr, _ error) {
			asked++
			for a := netip.MustParseAddr("10.0.0.20"); len(all) < n && link != "10.9.0.1"; a = a.Next() {
				all = append(all, a)
			}
			return all, nil
		},
	}
	nodes, err := r.Nodes([]pools.Unknown{machine(1, "10.0.0.5", ""), machine(2, "10.0.0.5", ""), machine(3, "10.0.0.6", "10.1.0.1"), machine(4, "10.0.0.6", "")})
	got := ""
	for _, n := range nodes {
		got += fmt.Sprintln(n.Pool, n.Name, n.MACs, n.IP, n.Tags)
	}
	want := "web m7 [02:00:00:00:00:01] 10.0.0.20 [fast]\nweb m8 [02:00:00:00:00:02] 10.0.0.21 [fast]\nweb m9 [02:00:00:00:00:03] 10.0.0.22 [fast]\nweb m10 [02:00:00:00:00:04] 10.0.0.23 [fast]\n"
	if err != nil || got != want || asked != 3 {
		t.Errorf("got %v, asked %d times,\n%s", err, asked, got)
	}
	if _, err := r.Nodes([]pools.Unknown{machine(4, "", "10.9.0.1")}); !errors.Is(err, adopt.ErrNoAddress) {
		t.Errorf("a full network: got %v", err)
	}
	if _, err := r.Nodes([]pools.Unknown{machine(9, "", ""), machine(9, "", "")}); err == nil || err.Error() != "no name\nno name" {
		t.Errorf("names that are none: got %v", err)
	}
	r.Free = nil
	if nodes, err = r.Nodes([]pools.Unknown{machine(1, "", "")}); err != nil || nodes[0].IP.IsValid() {
		t.Errorf("without addresses: got %v, %v", nodes, err)
	}
}
