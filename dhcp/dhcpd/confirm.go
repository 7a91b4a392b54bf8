package dhcpd

import "drover/dhcp"

// confirm queues a packet when it turns out that it counts: its sender answers, or does not. It
// returns false when the request is free again.
func (in *intake) confirm(r *request, v dhcp.Verdict) bool {
	asked := in.service.neighbors.Settle(v, in.service.networks.Routers(), func(counts bool) {
		if counts {
			in.pass(r, v.Relay)
			return
		}
		in.refuse(r, v.Why)
		in.service.free.Put(r)
	})
	if !asked {
		in.drop(r, dhcp.QueueFull, "dhcp: more senders of DHCP than can be asked by ARP")
	}
	return asked
}
