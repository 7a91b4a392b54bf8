package check

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"drover/cmd/drover/cli"
	"drover/kube/externalhost"
	"drover/kube/externalhost/bundle"
	"drover/pools"
)

const maxNames = 5 // of Nodes, in one finding

// Server examines a host from the objects of its cluster. Its config and networks are
// network; without a Node or ServiceAccount, status says so.
func Server(cluster string, status externalhost.Status, network *pools.HostNetwork, peers []externalhost.Peer) (all cli.Findings) {
	switch {
	case !status.Declared:
		all.Add("config", cli.Fault, "the host is not in the config", "add it to clusters[].hosts, or drover host rm "+status.Name)
	case !status.PodCIDR.IsValid() || !status.Account:
		all.Add("config", cli.Fault, "the host has no Node or ServiceAccount yet", "drover serve makes them from this config: see its log")
		return all
	case !status.Ready:
		all.Add("lease", cli.Fault, "nothing renews the Lease of the host: its Node is not Ready", "drover serve renews it: is it running with this config?")
	default:
		all.Add("config", cli.OK, fmt.Sprintf("Node, Lease and ServiceAccount are there, pod network %s", status.PodCIDR), "")
	}
	if network == nil {
		return all
	}
	v := view{facts: bundle.Host{Name: status.Name, Cluster: cluster, Address: status.Address, PodCIDR: status.PodCIDR, Network: network}, peers: peers, findings: &all}
	v.examine()
	return all
}

// view is a host as the Nodes of its cluster show it.
type view struct {
	facts    bundle.Host
	peers    []externalhost.Peer
	findings *cli.Findings
}

// nodes returns the Nodes that have a kubelet and a network of VXLAN.
func (v view) nodes() (all []externalhost.Peer) {
	for _, p := range v.peers {
		if !p.External && p.Backend == "vxlan" && p.PodCIDR.IsValid() && p.PublicIP.IsValid() {
			all = append(all, p)
		}
	}
	return all
}

func (v view) examine() {
	v.own()
	v.networks()
	v.vni()
	v.overlaps()
}

// own checks the host's own Node.
func (v view) own() {
	i := slices.IndexFunc(v.peers, func(p externalhost.Peer) bool { return p.Name == v.facts.Name })
	if i < 0 {
		v.findings.Add("node", cli.Fault, fmt.Sprintf("cluster %q has no Node %s: flannel has no network", v.facts.Cluster, v.facts.Name), "put the host into clusters[].hosts of drover's config; if it was removed, run "+v.facts.Dir()+"/uninstall.sh on the host")
		return
	}
	p := v.peers[i]
	restart := "systemctl restart drover-flanneld-" + v.facts.Cluster + " on the host, and journalctl -u drover-flanneld-" + v.facts.Cluster + " says what it does"
	switch {
	case p.PodCIDR != v.facts.PodCIDR:
		v.findings.Add("node", cli.Fault, fmt.Sprintf("the pod network of the host is now %s, and its bundle is for %s", p.PodCIDR, v.facts.PodCIDR), "drover host bundle "+v.facts.Name+", and install it anew")
	case p.Backend == "":
		v.findings.Add("flannel", cli.Fault, "flannel has not run on the host: nodes do not know the way to it", restart)
	case p.PublicIP != v.facts.Address:
		v.findings.Add("address", cli.Fault, fmt.Sprintf("nodes send packets for the host to %s, and its address is %s", p.PublicIP, v.facts.Address), restart)
	default:
		v.findings.Add("node", cli.OK, fmt.Sprintf("nodes send packets for %s to %s", p.PodCIDR, p.PublicIP), "")
	}
}

// networks checks that the cluster has flannel with VXLAN.
func (v view) networks() {
	var other, silent []string
	cni := ""
	for _, p := range v.peers {
		switch {
		case p.External:
		case p.CNI != "" && p.CNI != string(pools.Flannel):
			cni = p.CNI
			other = append(other, p.Name)
		case p.Backend == "":
			silent = append(silent, p.Name)
		case p.Backend != "vxlan":
			cni = "flannel with the backend " + p.Backend
			other = append(other, p.Name)
		}
	}
	if len(other) > 0 {
		v.findings.Add("cni", cli.Fault, fmt.Sprintf("the network of nodes %s is %s", names(other), cni), "hosts outside the cluster need flannel with VXLAN; docs/external-hosts.md says what is possible with others")
	}
	if len(silent) > 0 {
		v.findings.Add("cni", cli.Warning, fmt.Sprintf("flannel has not run on nodes %s: their pods are not reachable", names(silent)), "kubectl get pods -n kube-flannel -o wide, or the log of the cluster's CNI")
	}
}

// vni checks that the host's VXLAN is that of the nodes.
func (v view) vni() {
	var other []string
	vni, known := 0, 0
	for _, p := range v.peers {
		if p.VNI == 0 || p.External && p.Name != v.facts.Name {
			continue
		}
		known++
		if p.VNI != v.facts.Network.VNI {
			vni = p.VNI
			other = append(other, p.Name)
		}
	}
	switch {
	case len(other) > 0:
		v.findings.Add("vni", cli.Fault, fmt.Sprintf("the VXLAN of nodes %s has VNI %d, and that of the host %d: they drop each other's packets", names(other), vni, v.facts.Network.VNI),
			fmt.Sprintf("hostNetwork.vni: %d in drover's config, and install a new bundle on the host", vni))
	case known > 0:
		v.findings.Add("vni", cli.OK, fmt.Sprintf("%d, as on the nodes", v.facts.Network.VNI), "")
	}
}

// overlaps checks that addresses of Nodes are outside of the cluster's own networks, and
// that networks of Nodes are inside of podCIDR and apart.
func (v view) overlaps() {
	n := v.facts.Network
	for i, p := range v.peers {
		for _, c := range []netip.Prefix{n.PodCIDR, n.ServiceCIDR} {
			if p.Address.IsValid() && c.Contains(p.Address) {
				v.findings.Add("overlap", cli.Fault, fmt.Sprintf("the address %s of node %s is in the cluster's network %s", p.Address, p.Name, c), "networks of pods, Services and machines must be apart: the config's hostNetwork must be that of the cluster")
			}
		}
		if !p.PodCIDR.IsValid() {
			continue
		}
		if !n.PodCIDR.Overlaps(p.PodCIDR) {
			v.findings.Add("overlap", cli.Fault, fmt.Sprintf("the pod network %s of node %s is not in podCIDR %s", p.PodCIDR, p.Name, n.PodCIDR), "hostNetwork.podCIDR must be flannel's Network: kubectl get configmap -A shows net-conf.json")
		}
		for _, o := range v.peers[:i] {
			if o.PodCIDR.IsValid() && o.PodCIDR.Overlaps(p.PodCIDR) && (v.mine(o) || v.mine(p)) {
				v.findings.Add("overlap", cli.Fault, fmt.Sprintf("the pod network %s of %s overlaps %s of %s", p.PodCIDR, p.Name, o.PodCIDR, o.Name), "hostPodCIDR must be a part of podCIDR that no node has; take the host out, run drover host rm, and add it again")
			}
		}
	}
}

func (v view) mine(p externalhost.Peer) bool { return p.Name == v.facts.Name }

// names returns the first names of a list.
func names(all []string) string {
	text := strings.Join(all[:min(len(all), maxNames)], ", ")
	if len(all) > maxNames {
		text += fmt.Sprintf(" and %d more", len(all)-maxNames)
	}
	return text
}
