package config_test

import (
	"errors"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"drover/pools"
)

// leaseTable has leases by address.
type leaseTable map[netip.Addr]pools.Lease

func (l leaseTable) At(addr netip.Addr) (pools.Lease, bool) { e, ok := l[addr]; return e, ok }

// add leases an address to a MAC.
func (l leaseTable) add(addr string, m pools.MAC, node string, left time.Duration) {
	a := netip.MustParseAddr(addr)
	l[a] = pools.Lease{Address: a, MAC: m, Node: node, Pool: "catchall", Expires: time.Now().Add(left)}
}

// TestAddressOfALease: a node cannot get an address that another machine leases. Finding
// M10: both had it at once.
func TestAddressOfALease(t *testing.T) {
	live, path, data := newLive(t, &memory{nodes: map[string]pools.PoolNode{}})
	leases := leaseTable{}
	own, other := mac(t, "52:54:00:77:01:01"), mac(t, "52:54:00:77:01:02")
	leases.add("10.28.72.11", own, "node-525400770101", time.Hour)
	leases.add("10.28.72.12", other, "node-525400770102", time.Hour)
	leases.add("10.28.72.13", other, "node-525400770102", -time.Hour)
	leases.add("10.28.72.14", other, "port9", time.Hour)
	live.SetLeases(leases.At)

	node := func(name, ip string, m ...pools.MAC) pools.PoolNode {
		return pools.PoolNode{Pool: "compute", Node: pools.Node{Name: name, MACs: m, IP: netip.MustParseAddr(ip)}}
	}
	port := node("port9", "10.28.72.14")
	port.Match.CircuitID = "eth9"
	stranger := node("port8", "10.28.72.12")
	stranger.Match.CircuitID = "eth8"
	slot := node("slot", "10.28.72.12", own)
	slot.ChassisSlot = pools.ChassisSlot{Chassis: "m1", Slot: "c12n1"}
	for _, tt := range []struct {
		name      string
		node      pools.PoolNode
		refused   bool
		contested bool
	}{
		{"of its own MAC", node("a", "10.28.72.11", own), false, false},
		{"of another MAC", node("a", "10.28.72.12", own), true, false},
		{"that has ended", node("a", "10.28.72.13", own), false, false},
		{"of the machine at its port", port, false, false},
		{"of a machine elsewhere", stranger, true, false},
		{"of none", node("a", "10.28.72.15", own), false, false},
		{"for a slot of a chassis", slot, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := live.AddNode(tt.node)
			leased, ok := errors.AsType[*pools.LeasedError](err)
			if ok != tt.refused || !ok && err != nil {
				t.Fatalf("got %v, want refused %t", err, tt.refused)
			}
			if ok && (leased.Lease.MAC != other || !strings.Contains(err.Error(), "drover lease release 10.28.72.12")) {
				t.Errorf("the error names neither cause nor remedy: %v", err)
			}
			if got := live.Farm().Contested(tt.node.IP); got != tt.contested || len(live.Leased()) > 0 != tt.contested {
				t.Errorf("contested: got %t and %v, want %t", got, live.Leased(), tt.contested)
			}
			if !ok {
				err = live.RemoveNode(tt.node.Name)
			} else {
				err = nil
			}
			if err != nil {
				t.Fatal(err)
			}
		})
	}
	t.Run("by a change", func(t *testing.T) {
		if err := live.AddNode(node("a", "10.28.72.15", own)); err != nil {
			t.Fatal(err)
		}
		move := func(ip string) error {
			return live.UpdateNode("a", func(n pools.PoolNode) (pools.PoolNode, error) {
				n.IP = netip.MustParseAddr(ip)
				return n, nil
			})
		}
		if _, ok := errors.AsType[*pools.LeasedError](move("10.28.72.12")); !ok {
			t.Error("the node got the address of another machine")
		}
		if err := move("10.28.72.16"); err != nil {
			t.Error(err)
		}
	})
	t.Run("by the file", func(t *testing.T) {
		text := strings.ReplaceAll(string(data), "10.28.36.174", "10.28.72.12")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := live.Reload(); err != nil {
			t.Fatal(err)
		}
		all := live.Leased()
		if len(all) != 1 || all[0].Node != "m1c30" || !live.Farm().Contested(netip.MustParseAddr("10.28.72.12")) {
			t.Errorf("got %v, want m1c30 to wait for its address", all)
		}
		delete(leases, netip.MustParseAddr("10.28.72.12"))
		if all := live.Leased(); len(all) > 0 {
			t.Errorf("after the end of the lease: %v", all)
		}
	})
}
