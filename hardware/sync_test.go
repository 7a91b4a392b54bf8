package hardware_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"drover/hardware"
	"drover/hardware/bmc"
	"drover/hardware/importer"
	"drover/hardware/moonshot"
	"drover/pools"
)

// TestSync reads a chassis several times, and checks the stored nodes after each
// reading.
func TestSync(t *testing.T) {
	unreachable := fmt.Errorf("%w: no route", bmc.ErrUnreachable)
	refused := fmt.Errorf("%w: once", bmc.ErrRefused)
	full := errors.New("the disk is full")
	for _, tt := range []struct {
		name     string
		readings []any // the inventory as text, or an error
		write    error
		stored   []string // after each reading
		status   string   // at the end
	}{
		{"nothing happens", []any{"c1n1=01", "c1n1=01"}, nil, []string{"[m1c1n1=01] 1 written", "[m1c1n1=01] 1 written"}, "1 nodes  false"},
		{"exchanged", []any{"c1n1=01 c2n1=02", "c1n1=02 c2n1=01"}, nil, []string{"[m1c1n1=01 m1c2n1=02] 1 written", "[m1c1n1=02 m1c2n1=01] 2 written"}, "2 nodes  false"},
		{"unreachable for a while", []any{"c1n1=01", unreachable, "c1n1=03"}, nil, []string{"[m1c1n1=01] 1 written", "[m1c1n1=01] 1 written", "[m1c1n1=03] 2 written"}, "1 nodes  false"},
		{"most of it is gone", []any{"c1n1=01 c2n1=02 c3n1=03", "c1n1=05"}, nil, []string{"[m1c1n1=01 m1c2n1=02 m1c3n1=03] 1 written", "[m1c1n1=01 m1c2n1=02 m1c3n1=03] 1 written"}, "3 nodes most of the chassis is missing: m1 had 3 nodes, 2 of them are not there (if that is right: --force) false"},
		{"the login is refused", []any{"c1n1=01", refused, "c1n1=03", "c1n1=03"}, nil, []string{"[m1c1n1=01] 1 written", "[m1c1n1=01] 1 written", "[m1c1n1=01] 1 written"}, "1 nodes login refused: once true"},
		{"nothing can be stored", []any{"c1n1=01"}, full, []string{"[] 1 written"}, "0 nodes store the nodes of m1: the disk is full false"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				namer, err := importer.NewNamer(pools.Chassis{Name: "m1", Pool: "compute"}, false)
				if err != nil {
					t.Fatal(err)
				}
				var mu sync.Mutex // guards nodes, which Run and the test share
				var nodes []pools.PoolNode
				readings, written := 0, 0
				s := &hardware.Sync{
					Chassis: pools.Chassis{Name: "m1", Interval: pools.Duration(time.Hour)}, Namer: namer,
					Read: func(context.Context) (*moonshot.Inventory, error) {
						r := tt.readings[min(readings, len(tt.readings)-1)]
						readings++
						if err, ok := r.(error); ok {
							return nil, err
						}
						return chassisOf(t, r.(string)), nil
					},
					Stored: func() (out importer.Stored) {
						mu.Lock()
						defer mu.Unlock()
						for _, n := range nodes {
							out.Nodes = append(out.Nodes, pools.NodeInfo{PoolNode: n})
						}
						return out
					},
					Write: func(changes []pools.NodeChange) error {
						mu.Lock()
						defer mu.Unlock()
						written++
						if tt.write == nil {
							nodes = after(nodes, changes)
						}
						return tt.write
					},
				}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { defer close(done); s.Run(ctx) }()
				time.Sleep(time.Minute)
				for i, want := range tt.stored {
					synctest.Wait()
					mu.Lock()
					var words []string
					for _, n := range nodes {
						words = append(words, n.Name+"="+n.MACs[0].String()[15:])
					}
					got := fmt.Sprintf("%v %d written", words, written)
					mu.Unlock()
					if got != want {
						t.Errorf("after reading %d: got %s, want %s", i+1, got, want)
					}
					if i < len(tt.stored)-1 {
						time.Sleep(time.Hour)
					}
				}
				st := s.Status()
				if got := fmt.Sprintf("%d nodes %s %t", st.Nodes, st.Error, st.Stopped); got != tt.status || st.Last.IsZero() {
					t.Errorf("status: got %s, want %s", got, tt.status)
				}
				cancel()
				<-done
			})
		})
	}
}

// chassisOf makes an inventory from "c1n1=01 c2n1=02".
func chassisOf(t *testing.T, text string) *moonshot.Inventory {
	t.Helper()
	inv := &moonshot.Inventory{}
	for word := range strings.FieldsSeq(text) {
		id, end, _ := strings.Cut(word, "=")
		slot, ok := pools.ParseSlot(id)
		if !ok {
			t.Fatalf("%q is no slot", id)
		}
		mac, err := pools.ParseMAC("94:57:a5:00:00:" + end)
		if err != nil {
			t.Fatal(err)
		}
		inv.Nodes = append(inv.Nodes, moonshot.Node{Slot: slot, NICs: []moonshot.NIC{{Number: 1, MAC: mac}}})
	}
	return inv
}

// after returns nodes with the changes applied.
func after(nodes []pools.PoolNode, changes []pools.NodeChange) []pools.PoolNode {
	out := slices.Clone(nodes)
	for _, c := range changes {
		i := slices.IndexFunc(out, func(n pools.PoolNode) bool { return n.Name == c.New.Name })
		if i < 0 {
			out = append(out, *c.New)
		} else {
			out[i] = *c.New
		}
	}
	return out
}
