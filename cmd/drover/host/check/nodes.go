package check

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"

	"drover/cmd/drover/cli"
	"drover/kube/externalhost"
)

const (
	maxNodes = 8  // that the host sends echo requests to
	small    = 64 // bytes of a packet
)

// nodes sends echo requests to the nodes, through the VXLAN.
func (h *Host) nodes(ctx context.Context, all []externalhost.Peer) {
	if len(all) == 0 {
		h.Add("vxlan", cli.Skipped, "no node has a network of VXLAN", "")
		return
	}
	all = all[:min(len(all), maxNodes)]
	for _, p := range all {
		if !h.way(p) {
			return // nothing of what follows says more
		}
	}
	mtu := 0
	for _, l := range links() {
		if l.name == h.Facts.Interface() {
			mtu = l.mtu
		}
	}
	results := make([]result, len(all))
	var trying sync.WaitGroup
	for i, p := range all {
		trying.Go(func() { results[i] = h.try(ctx, p, mtu) })
	}
	trying.Wait()
	h.judge(all, results, mtu)
}

// way checks the routes to a node, and to its pods.
func (h *Host) way(p externalhost.Peer) bool {
	port := h.Facts.Network.Port
	from, err := source(netip.AddrPortFrom(p.PublicIP, uint16(port)))
	if err != nil {
		h.Add("route", cli.Fault, fmt.Sprintf("there is no route to node %s (%s): %v", p.Name, p.PublicIP, err), "ip route get "+p.PublicIP.String())
		return false
	}
	own, known := holder(h.Facts.Address)
	if out, ok := holder(from); ok && known && out.name != own.name {
		text := fmt.Sprintf("packets to node %s leave by %s, and those from it come to %s, by %s", p.Name, out.name, h.Facts.Address, own.name)
		if h.strict(own.name) {
			h.Add("rp_filter", cli.Fault, text+", whose rp_filter drops them", fmt.Sprintf("sysctl -w net.ipv4.conf.%s.rp_filter=2, or a route to the nodes by %s", own.name, own.name))
			return false
		}
		h.Add("route", cli.Warning, text, "a route to the nodes by "+own.name)
	}
	from, err = source(netip.AddrPortFrom(p.PodCIDR.Addr(), 80))
	if err != nil || from != h.Facts.PodCIDR.Addr() {
		by := "no interface"
		if out, ok := holder(from); ok {
			by = out.name
		}
		h.Add("route", cli.Fault, fmt.Sprintf("packets to pods of node %s leave by %s, and not by %s", p.Name, by, h.Facts.Interface()),
			fmt.Sprintf("ip route get %s shows the route, ip rule the tables before it; journalctl -u drover-flanneld-%s says whether flannel made its own", p.PodCIDR.Addr(), h.Facts.Cluster))
		return false
	}
	return true
}

// result says what the packets to a node came to.
type result struct {
	err   error
	under bool // the node itself answers, without VXLAN
	small bool // small packets come back through the VXLAN
	size  int  // of the largest packets that come back
}

func (h *Host) try(ctx context.Context, p externalhost.Peer, mtu int) (r result) {
	inner := func(size int) bool {
		ok, err := echo(ctx, h.Facts.PodCIDR.Addr(), p.PodCIDR.Addr(), size, h.Timeout)
		r.err = err
		return ok
	}
	if r.small = inner(small); !r.small {
		if r.err == nil {
			r.under, _ = echo(ctx, h.Facts.Address, p.PublicIP, small, h.Timeout)
		}
		return r
	}
	if inner(mtu) {
		r.size = mtu
		return r
	}
	low, high := small, mtu // the first comes back, the second does not
	for high-low > 8 && ctx.Err() == nil {
		if mid := (low + high) / 2; inner(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	r.size = low
	return r
}

// judge adds the findings of all nodes.
func (h *Host) judge(all []externalhost.Peer, results []result, mtu int) {
	var good, silent, dead, narrow []string
	size := mtu
	for i, r := range results {
		name := all[i].Name
		switch {
		case r.err != nil:
			h.Add("vxlan", cli.Skipped, fmt.Sprintf("no echo request can be sent to node %s: %v", name, r.err), "run drover host check as root")
		case !r.small && !r.under:
			dead = append(dead, name+" ("+all[i].PublicIP.String()+")")
		case !r.small:
			silent = append(silent, name)
		case r.size < mtu:
			narrow, size = append(narrow, name), min(size, r.size)
		default:
			good = append(good, name)
		}
	}
	if len(dead) > 0 {
		h.Add("vxlan", cli.Fault, "neither the VXLAN nor the address of these nodes answers: "+names(dead), "a route or firewall between "+h.Facts.Address.String()+" and the nodes; UDP port "+fmt.Sprint(h.Facts.Network.Port)+" must be open in both directions")
	}
	if len(silent) > 0 {
		h.Add("vxlan", cli.Fault, fmt.Sprintf("nodes %s answer, but not through the VXLAN: UDP port %d is blocked in a direction", names(silent), h.Facts.Network.Port),
			fmt.Sprintf("open UDP port %d between %s and the nodes in all firewalls, of the host (nft list ruleset), the nodes and the network between; flannel of the nodes must use that port, too", h.Facts.Network.Port, h.Facts.Address))
	}
	if len(narrow) > 0 {
		h.Add("mtu", cli.Fault, fmt.Sprintf("packets of %d bytes to nodes %s are lost, those of %d come back: the MTU of the network between is too small", mtu, names(narrow), size),
			fmt.Sprintf("let the network carry packets of %d bytes, or lower the MTU of this host: ip link set %s mtu %d", mtu+vxlanHeaders, h.Facts.Interface(), size))
	}
	if len(good) > 0 && !slices.Contains([]int{len(silent), len(dead)}, len(all)) {
		h.Add("vxlan", cli.OK, fmt.Sprintf("host and nodes %s reach each other in the pod network, with packets of %d bytes; pods reach the host at %s", names(good), mtu, h.Facts.PodCIDR.Addr()), "")
	}
}

// pods connects to pods of Services.
func (h *Host) pods(ctx context.Context) {
	all, err := h.Cluster.Targets(ctx, h.Facts.Network.PodCIDR)
	switch {
	case err != nil:
		h.Add("pod", cli.Skipped, err.Error(), "")
		return
	case len(all) == 0:
		h.Add("pod", cli.Skipped, "no Service of the cluster has a ready pod with a port of TCP", "")
		return
	}
	for _, a := range all {
		if h.connects(ctx, a) {
			h.Add("pod", cli.OK, "the pod at "+a.String()+" answers", "")
			return
		}
	}
	h.Add("pod", cli.Fault, fmt.Sprintf("of %d ready pods none answers, the first at %s", len(all), all[0]), "see the findings of vxlan and mtu; where these are ok: a NetworkPolicy, or the firewall of the nodes (net.ipv4.ip_forward, chain FORWARD)")
}

// connects reports whether an address answers, if only to refuse a connection.
func (h *Host) connects(ctx context.Context, a netip.AddrPort) bool {
	d := net.Dialer{Timeout: h.Timeout}
	c, err := d.DialContext(ctx, "tcp4", a.String())
	if err == nil {
		_ = c.Close()
	}
	return err == nil || isRefused(err)
}
