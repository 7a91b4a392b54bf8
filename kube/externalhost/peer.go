package externalhost

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/netip"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drover/kube/cluster"
	"drover/pools"
	"drover/pools/config/externalhost"
)

const (
	flannelType   = "flannel.alpha.coreos.com/backend-type"
	flannelPublic = "flannel.alpha.coreos.com/public-ip"

	maxSlices  = 200 // EndpointSlices that Targets reads
	maxTargets = 8   // addresses of pods that it returns
)

// Peer is a Node, as the others see it in the pod network.
type Peer struct {
	Name     string
	Address  netip.Addr   // InternalIP of IPv4; invalid if it has none
	PodCIDR  netip.Prefix // of IPv4; invalid if it has none
	External bool         // it is a host outside the cluster
	CNI      string       // flannel, cilium, calico, or nothing that is known
	Backend  string       // flannel's: vxlan
	VNI      int          // of flannel's VXLAN; 0: it has written none
	PublicIP netip.Addr   // where flannel of the others sends its packets
}

// Open returns the hosts of a cluster for a program that only reads, with the credentials of a
// kubeconfig file. They may be those of a host.
func Open(name, kubeconfig string, now func() time.Time) *Hosts {
	return New(cluster.New(pools.Cluster{Name: name}, kubeconfig, now), slog.New(slog.DiscardHandler), now)
}

// Peers returns all Nodes but that of the range.
func (h *Hosts) Peers(ctx context.Context) (all []Peer, err error) {
	h.cluster.AwaitSecret(ctx)
	err = cluster.EachPage(ctx, h.cluster, h.cluster.Client().CoreV1().Nodes(), metav1.ListOptions{}, func(page []*corev1.Node) {
		for _, n := range page {
			if n.Name != externalhost.RangeName {
				all = append(all, peer(n))
			}
		}
	})
	return all, h.cluster.Wrap("list the Nodes", err)
}

// peer reads a Node. Its annotations may be anything.
func peer(n *corev1.Node) Peer {
	p := Peer{Name: n.Name, External: n.Labels[Label] == labelValue, Backend: n.Annotations[flannelType]}
	for _, a := range n.Status.Addresses {
		if addr, err := netip.ParseAddr(a.Address); err == nil && addr.Is4() && a.Type == corev1.NodeInternalIP && !p.Address.IsValid() {
			p.Address = addr
		}
	}
	for _, c := range podCIDRs(n) {
		if c.Addr().Is4() && !p.PodCIDR.IsValid() {
			p.PodCIDR = c
		}
	}
	var data struct{ VNI int }
	if json.Unmarshal([]byte(n.Annotations[flannelBackend]), &data) == nil {
		p.VNI = data.VNI
	}
	p.PublicIP, _ = netip.ParseAddr(n.Annotations[flannelPublic]) // without one it stays invalid
	for key := range n.Annotations {
		switch prefix, _, _ := strings.Cut(key, "/"); {
		case prefix == "flannel.alpha.coreos.com" && key != publicIP:
			p.CNI = "flannel"
		case strings.HasSuffix(prefix, "cilium.io") && p.CNI == "":
			p.CNI = "cilium"
		case strings.HasSuffix(prefix, "projectcalico.org") && p.CNI == "":
			p.CNI = "calico"
		}
	}
	return p
}

// Targets returns addresses of ready pods with a port of TCP, of some of the cluster's
// Services: eight at most.
func (h *Hosts) Targets(ctx context.Context, within netip.Prefix) (all []netip.AddrPort, err error) {
	h.cluster.AwaitSecret(ctx)
	list, err := h.cluster.Client().DiscoveryV1().EndpointSlices("").List(ctx, metav1.ListOptions{Limit: maxSlices})
	if err != nil {
		return nil, h.cluster.Wrap("list the EndpointSlices", err)
	}
	for i := range list.Items {
		all = append(all, targets(&list.Items[i], within)...)
	}
	return all[:min(len(all), maxTargets)], nil
}

// targets returns the first ready endpoint of a slice.
func targets(s *discoveryv1.EndpointSlice, within netip.Prefix) []netip.AddrPort {
	for _, p := range s.Ports {
		if p.Port == nil || p.Protocol != nil && *p.Protocol != corev1.ProtocolTCP || *p.Port < 1 || *p.Port > 65535 {
			continue
		}
		for _, e := range s.Endpoints {
			if e.Conditions.Ready != nil && !*e.Conditions.Ready {
				continue
			}
			for _, text := range e.Addresses {
				if a, err := netip.ParseAddr(text); err == nil && within.Contains(a) {
					return []netip.AddrPort{netip.AddrPortFrom(a, uint16(*p.Port))}
				}
			}
		}
	}
	return nil
}
