package dhcpd

import (
	"sync/atomic"

	"drover/dhcp"
)

const (
	whySilent  = "the host that sent it does not answer ARP for its source address"
	whyMachine = "forwarded by a machine that no node declares: set the sysctl net.ipv4.conf.all.rp_filter=1 on it; " +
		"if the sender is a router, name its address in subnets[].router or relays, and end its lease with drover lease release"
	tooMany = "dhcp: more senders of DHCP than can be asked by ARP"
)

// confirm queues a packet once its sender answers ARP for the address [dhcp.Verdict.Confirm]. It
// returns false when the request is free again.
func (in *intake) confirm(r *request, v dhcp.Verdict) bool {
	asked := in.neighbors.ask(neighbor{v.Confirm, v.By}, confirmPatience, func(ok bool) { in.settle(r, ok, v.Relay, whySilent) })
	if !asked {
		in.drop(r, dhcp.QueueFull, tooMany)
	}
	return asked
}

// doubt queues a packet unless its sender answers ARP for the address [dhcp.Verdict.Unless], and
// for that of no router on the wire. It returns false when the request is free again.
func (in *intake) doubt(r *request, v dhcp.Verdict) bool {
	ask := []neighbor{{v.Unless, v.By}}
	for _, a := range in.networks.Routers() {
		if in.sourceFor(a).IsValid() && a != v.Unless && len(ask) < maxRouters {
			ask = append(ask, neighbor{a, v.By})
		}
	}
	var machine, settled atomic.Bool
	var left atomic.Int32
	left.Store(int32(len(ask)))
	end := func(ok bool) {
		if settled.CompareAndSwap(false, true) {
			in.settle(r, ok, v.Relay, whyMachine)
		}
	}
	for i, n := range ask {
		answered := func(ok bool) {
			switch {
			case ok && i > 0: // a router
				end(true)
			case ok:
				machine.Store(true)
			}
			if left.Add(-1) == 0 {
				end(!machine.Load())
			}
		}
		switch {
		case in.neighbors.ask(n, confirmPatience, answered):
		case i == 0:
			in.drop(r, dhcp.QueueFull, tooMany)
			return false
		default:
			answered(false)
		}
	}
	return true
}

// maxRouters bounds the questions about one packet.
const maxRouters = 16

// settle queues a packet if it counts.
func (in *intake) settle(r *request, counts, relay bool, why string) {
	if counts {
		in.pass(r, relay)
		return
	}
	in.refuse(r, why)
	in.free.Put(r)
}
