package pools

import "net/netip"

// CNI is the network of a cluster's pods.
type CNI string

// Flannel is the only network whose parts run on hosts outside the cluster.
const Flannel CNI = "flannel"

// ProxyMode is the kind of rules that kube-proxy writes on a host.
type ProxyMode string

// The modes of kube-proxy.
const (
	ProxyNFTables ProxyMode = "nftables"
	ProxyIPTables ProxyMode = "iptables"
)

// HostNetwork describes the network that hosts outside a cluster share with its pods.
type HostNetwork struct {
	CNI         CNI          `json:"cni,omitempty"`          // default flannel, with VXLAN; no other is supported
	PodCIDR     netip.Prefix `json:"podCIDR,omitzero"`       // of the cluster: flannel's Network; default controlPlane.podSubnet
	ServiceCIDR netip.Prefix `json:"serviceCIDR,omitzero"`   // of the cluster; default controlPlane.serviceSubnet
	HostPodCIDR netip.Prefix `json:"hostPodCIDR,omitzero"`   // part of podCIDR for hosts alone: 10.244.240.0/20
	NodeMask    int          `json:"nodeMaskSize,omitempty"` // size of a node's network: --node-cidr-mask-size; default 24
	VNI         int          `json:"vni,omitempty"`          // of flannel's VXLAN; default 1
	ProxyMode   ProxyMode    `json:"proxyMode,omitempty"`    // of kube-proxy on the hosts: nftables or iptables; default nftables
	Port        int          `json:"port,omitempty"`         // UDP port of flannel's VXLAN; default 8472
	DNS         netip.Addr   `json:"dns,omitzero"`           // ClusterIP of the cluster's DNS; default the tenth address of serviceCIDR
	Domain      string       `json:"domain,omitempty"`       // of the cluster's DNS; default cluster.local
}

// ExternalHost is a host outside a cluster, without a kubelet, that reaches the cluster's
// pods and Services and is reached from its pods.
type ExternalHost struct {
	Name    string     `json:"name"`                  // of its Node: a DNS label
	Address netip.Addr `json:"address"`               // where the cluster's nodes reach it
	Size    int        `json:"podCIDRSize,omitempty"` // prefix length of its part of hostPodCIDR; default 28
	Expose  []Exposed  `json:"expose,omitempty"`      // Services that ports of the host lead to
}

// HostSize is the prefix length of a host's part of hostPodCIDR, where none is set.
const HostSize = 28

// Gateways returns the nodes of pools with role gateway as hosts of a cluster: the declared
// ones, and those of added.
func (c *Config) Gateways(cluster string, added []PoolNode) (all []ExternalHost) {
	add := func(n Node) {
		if !n.Ignore {
			all = append(all, ExternalHost{Name: n.Name, Address: n.IP, Size: HostSize})
		}
	}
	for _, p := range c.Pools {
		if p.Role != RoleGateway || p.Cluster != cluster || p.Ignore {
			continue
		}
		for _, n := range p.Nodes {
			add(n)
		}
		for _, n := range added {
			if n.Pool == p.Name {
				add(n.Node)
			}
		}
	}
	return all
}

// ClusterHost is a host outside a cluster, with the name of the cluster.
type ClusterHost struct {
	Cluster string `json:"cluster"` // name of its cluster
	ExternalHost
}

// Exposed is a port of a Service at a port of a host: "drover host proxy" there relays
// connections to the pods.
type Exposed struct {
	Service  string `json:"service"`            // NAME.NAMESPACE
	Port     int    `json:"port"`               // of the Service, of TCP
	HostPort int    `json:"hostPort,omitempty"` // port of the host, at its address and at 127.0.0.1; default port
}
