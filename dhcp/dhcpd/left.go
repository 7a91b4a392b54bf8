package dhcpd

import (
	"sync"

	"drover/dhcp"
	"drover/pools"
)

// maxLeft bounds the machines that are remembered after they returned their leases.
const maxLeft = 4096

// left knows the machines that returned a lease, as well as those that have one. A pod
// can release the lease of its own node. The node would then be no machine, and what it
// forwards would count as the packets of a router.
type left struct {
	dhcp.Machines

	mu   sync.Mutex
	macs map[pools.MAC]bool
}

// Known reports whether mac is a machine's, or was.
func (l *left) Known(mac pools.MAC) bool {
	if l.Machines.Known(mac) {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.macs[mac]
}

// add adds a machine that returned its lease.
func (l *left) add(mac pools.MAC) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.macs == nil || len(l.macs) >= maxLeft {
		l.macs = make(map[pools.MAC]bool)
	}
	l.macs[mac] = true
}
