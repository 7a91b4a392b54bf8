package boots

import "drover/pools"

// Reconcile makes the table follow a farm in which nodes were added, renamed or removed.
// nodeOf returns the node that the machine of a boot is now, given its MAC and the node
// that it was, or "" if no node declares it. A boot follows its machine to the node of
// another name. Boots of declared machines that no node declares any more are dropped;
// those of machines that none has ever declared stay.
func (t *Table) Reconcile(nodeOf func(mac pools.MAC, node string) string) {
	now := map[machine]string{}
	for _, m := range t.machines() {
		now[m] = nodeOf(m.mac, m.node)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var gone []*boot
	for mac, all := range t.byMAC {
		for _, b := range all {
			switch node, asked := now[machine{mac, b.Record.Node}]; {
			case !asked || node == b.Record.Node:
			case node != "":
				b.Record.Node, b.Record.Unknown = node, false
				t.dirty[b] = true
				t.place(b)
			case !b.Record.Unknown:
				gone = append(gone, b)
			}
		}
	}
	for _, b := range gone {
		t.drop(b)
	}
}

// machine is a machine that has boots, and the node that it was in them.
type machine struct {
	mac  pools.MAC
	node string
}

func (t *Table) machines() []machine {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []machine
	for mac, boots := range t.byMAC {
		for _, b := range boots {
			all = append(all, machine{mac, b.Record.Node})
		}
	}
	return all
}

// Forget drops the boots of a node and returns their number. A machine in the middle of its
// boot then has to begin anew.
func (t *Table) Forget(node string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	var gone []*boot
	for _, all := range t.byMAC {
		for _, b := range all {
			if b.Record.Node == node {
				gone = append(gone, b)
			}
		}
	}
	for _, b := range gone {
		t.drop(b)
	}
	return len(gone)
}
