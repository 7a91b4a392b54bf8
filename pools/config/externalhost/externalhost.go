// Package externalhost checks the hosts outside a cluster as the config describes them,
// and sets their defaults.
//
// Their networks must be inside the cluster's pod network: the controller manager ends at
// its start when a Node has a network outside of --cluster-cidr. They must be in a part
// of it that no node has. The controller sees which networks nodes have; this package
// does not.
package externalhost

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"drover/pools"
	"drover/pools/config/defaults"
	"drover/pools/option"
)

// Mistake is a mistake in the hosts of a cluster.
type Mistake struct {
	Path  string // clusters[0].hostNetwork.podCIDR
	About string // begins the text: cluster "a": hostNetwork.podCIDR
	Err   error  // mostly a [pools.HintError]
	Other string // the other value of a conflict, by its path; the cluster for other mistakes
}

// RangeName is the name of the Node that holds hostPodCIDR, so that the controller
// manager gives no part of it to a node.
const RangeName = "drover-host-range"

// DefaultSize is the prefix length of a host's network.
const DefaultSize = pools.HostSize

// SetDefaults sets the defaults of fields that are not set.
func SetDefaults(c *pools.Cluster) {
	for i := range c.Hosts {
		defaults.Set(&c.Hosts[i].Size, DefaultSize)
		for j := range c.Hosts[i].Expose {
			defaults.Set(&c.Hosts[i].Expose[j].HostPort, c.Hosts[i].Expose[j].Port)
		}
	}
	n := c.HostNetwork
	if n == nil {
		return
	}
	if c.ControlPlane != nil {
		defaults.Set(&n.PodCIDR, firstIPv4(c.ControlPlane.PodSubnet))
		defaults.Set(&n.ServiceCIDR, firstIPv4(c.ControlPlane.ServiceSubnet))
	}
	defaults.Set(&n.CNI, pools.Flannel)
	defaults.Set(&n.NodeMask, 24)
	defaults.Set(&n.VNI, 1)
	defaults.Set(&n.Port, 8472)
	defaults.Set(&n.ProxyMode, pools.ProxyNFTables)
	defaults.Set(&n.Domain, "cluster.local")
	if n.ServiceCIDR.IsValid() {
		dns := n.ServiceCIDR.Masked().Addr()
		for range 10 {
			dns = dns.Next()
		}
		defaults.Set(&n.DNS, dns)
	}
}

func firstIPv4(all pools.Prefixes) netip.Prefix {
	for _, p := range all {
		if p.Addr().Is4() {
			return p
		}
	}
	return netip.Prefix{}
}

// checker collects the mistakes of one cluster.
type checker struct {
	index   int
	cluster *pools.Cluster
	hosts   []placed
	found   []Mistake
}

// placed is a host with its path: one of the cluster's own, or a node of a pool of gateways.
type placed struct {
	pools.ExternalHost
	path string // hosts[0], pools[1].nodes[2]
}

// failf notes a mistake. The path is one below the cluster, or that of a pool.
func (c *checker) failf(path, hint, format string, args ...any) {
	c.add(path, pools.Hint(hint, format, args...))
}

func (c *checker) add(path string, err error) {
	c.found = append(c.found, Mistake{
		Path: inConfig(c.index, path), About: fmt.Sprintf("cluster %q: %s", c.cluster.Name, path), Err: err,
		Other: fmt.Sprintf("clusters[%d]", c.index),
	})
}

// conflict names the other value of the mistake that was added last, by its path in the config.
func (c *checker) conflict(path string) { c.found[len(c.found)-1].Other = path }

// inConfig returns the path in the config of one below a cluster, or of one of a pool.
func inConfig(cluster int, path string) string {
	if strings.HasPrefix(path, "pools[") {
		return path
	}
	return fmt.Sprintf("clusters[%d].%s", cluster, path)
}

// Check returns the mistakes in the hosts of the cluster with that index, with its
// defaults. A mistake of two clusters is one of the later.
func Check(cfg *pools.Config, index int) []Mistake {
	cluster := &cfg.Clusters[index]
	c := &checker{index: index, cluster: cluster, hosts: hostsOf(cfg, cluster)}
	for i := range index {
		c.shared(i, &cfg.Clusters[i], hostsOf(cfg, &cfg.Clusters[i]))
	}
	c.gateways(cfg)
	n := cluster.HostNetwork
	if n == nil {
		if len(cluster.Hosts) > 0 {
			c.failf("hosts", "hostNetwork: {podCIDR: 10.244.0.0/16, serviceCIDR: 10.96.0.0/12, hostPodCIDR: 10.244.240.0/20}", "hosts need a hostNetwork")
		}
		return c.found
	}
	c.network(n)
	c.subnets(n, cfg.Subnets)
	nodes := nodeNames(cfg, cluster.Name)
	for i, h := range c.hosts {
		c.host(h.path, h.ExternalHost, c.hosts[:i], nodes)
	}
	c.room(n)
	return c.found
}

// nodeNames returns the paths of the nodes that boot into a cluster, by their names.
func nodeNames(cfg *pools.Config, cluster string) map[string]string {
	paths := map[string]string{}
	for i, p := range cfg.Pools {
		if p.Cluster == cluster && p.Role != pools.RoleGateway {
			for j, n := range p.Nodes {
				paths[n.Name] = fmt.Sprintf("pools[%d].nodes[%d]", i, j)
			}
		}
	}
	return paths
}

// unsupported has the reasons why hosts cannot take part in other networks.
var unsupported = map[pools.CNI]string{
	"cilium": "Cilium has external workloads no more, and its agent needs a kubelet's Node; route the pod network to the host, or use Cilium's own ClusterMesh",
	"calico": "Calico's networks are blocks of its own IPAM, not a Node's podCIDR: peer the host by BGP, or protect it as a HostEndpoint",
}

func (c *checker) network(n *pools.HostNetwork) {
	if reason, ok := unsupported[n.CNI]; ok {
		c.failf("hostNetwork.cni", reason, "%s is not supported", n.CNI)
	} else if n.CNI != pools.Flannel {
		c.failf("hostNetwork.cni", "cni: flannel", "%q is not supported", n.CNI)
	}
	c.prefix("podCIDR", n.PodCIDR, "10.244.0.0/16, flannel's Network and the controller manager's --cluster-cidr")
	c.prefix("serviceCIDR", n.ServiceCIDR, "10.96.0.0/12, the API server's --service-cluster-ip-range")
	c.prefix("hostPodCIDR", n.HostPodCIDR, "10.244.240.0/20, the end of podCIDR")
	switch {
	case !n.PodCIDR.IsValid() || !n.HostPodCIDR.IsValid():
	case n.NodeMask < n.PodCIDR.Bits() || n.NodeMask > 30:
		c.failf("hostNetwork.nodeMaskSize", "nodeMaskSize: 24", "%d is not from %d, the size of podCIDR, to 30", n.NodeMask, n.PodCIDR.Bits())
	case !contains(n.PodCIDR, n.HostPodCIDR):
		c.failf("hostNetwork.hostPodCIDR", "the end of podCIDR: the controller manager ends when a Node has a network outside of its --cluster-cidr", "%s is not inside podCIDR %s", n.HostPodCIDR, n.PodCIDR)
	case n.HostPodCIDR == n.PodCIDR:
		c.failf("hostNetwork.hostPodCIDR", "a part of it, at the end", "%s is all of podCIDR, so that nodes get no network", n.HostPodCIDR)
	case n.HostPodCIDR.Bits() > n.NodeMask:
		c.failf("hostNetwork.hostPodCIDR", fmt.Sprintf("%s/%d or larger", n.HostPodCIDR.Addr(), n.NodeMask), "%s is smaller than the network of a node (/%d), which then could be given to one", n.HostPodCIDR, n.NodeMask)
	}
	if n.PodCIDR.IsValid() && n.ServiceCIDR.IsValid() && n.PodCIDR.Overlaps(n.ServiceCIDR) {
		c.failf("hostNetwork.serviceCIDR", "the cluster's own networks", "%s overlaps podCIDR %s", n.ServiceCIDR, n.PodCIDR)
	}
	if n.VNI < 1 || n.VNI >= 1<<24 {
		c.failf("hostNetwork.vni", "vni: 1, as in flannel's net-conf.json", "%d is not from 1 to 16777215", n.VNI)
	}
	if n.Port < 1 || n.Port > 65535 {
		c.failf("hostNetwork.port", "port: 8472", "%d is not from 1 to 65535", n.Port)
	}
	if n.ProxyMode != pools.ProxyNFTables && n.ProxyMode != pools.ProxyIPTables {
		c.failf("hostNetwork.proxyMode", "proxyMode: nftables, or iptables for kernels before 5.13", "%q is not a mode of kube-proxy for hosts", n.ProxyMode)
	}
	if n.ServiceCIDR.IsValid() && !n.ServiceCIDR.Contains(n.DNS) {
		c.failf("hostNetwork.dns", "kubectl get service kube-dns -n kube-system", "%s is not in serviceCIDR %s", n.DNS, n.ServiceCIDR)
	}
	if !option.IsDomain(n.Domain) {
		c.failf("hostNetwork.domain", "domain: cluster.local", "%q is not a domain", n.Domain)
	}
}

// subnets checks that the cluster's networks do not overlap those of machines.
func (c *checker) subnets(n *pools.HostNetwork, subnets []pools.Subnet) {
	for i, s := range subnets {
		if n.PodCIDR.IsValid() && s.CIDR.IsValid() && n.PodCIDR.Overlaps(s.CIDR) {
			c.failf("hostNetwork.podCIDR", "networks of pods and machines must be apart", "%s overlaps subnet %s", n.PodCIDR, s.CIDR)
			c.conflict(fmt.Sprintf("subnets[%d]", i))
		}
		if n.ServiceCIDR.IsValid() && s.CIDR.IsValid() && n.ServiceCIDR.Overlaps(s.CIDR) {
			c.failf("hostNetwork.serviceCIDR", "networks of Services and machines must be apart", "%s overlaps subnet %s", n.ServiceCIDR, s.CIDR)
			c.conflict(fmt.Sprintf("subnets[%d]", i))
		}
	}
}

// prefix checks that a network is there, of IPv4, and without host bits.
func (c *checker) prefix(name string, p netip.Prefix, hint string) {
	path := "hostNetwork." + name
	switch {
	case !p.IsValid():
		c.failf(path, name+": "+hint, "%s is not set", name)
	case !p.Addr().Is4():
		c.failf(path, "IPv4: "+hint, "%s: hosts outside the cluster have IPv4 alone", p)
	case p != p.Masked():
		c.failf(path, "write "+p.Masked().String(), "%s has host bits set", p)
	}
}

var label = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

func (c *checker) host(path string, h pools.ExternalHost, earlier []placed, nodes map[string]string) {
	n := c.cluster.HostNetwork
	first := func(same func(placed) bool) int { return slices.IndexFunc(earlier, same) }
	sameName := first(func(o placed) bool { return o.Name == h.Name })
	sameAddress := first(func(o placed) bool { return o.Address == h.Address })
	switch {
	case !label.MatchString(h.Name):
		c.failf(path+".name", "use a-z, 0-9 and '-', 63 at most", "%q cannot be the name of a host", h.Name)
	case h.Name == RangeName:
		c.failf(path+".name", "any other", "%q is the Node that holds hostPodCIDR", h.Name)
	case nodes[h.Name] != "":
		c.failf(path+".name", "a name of its own", "%q is a node of a pool: its kubelet has that Node", h.Name)
		c.conflict(nodes[h.Name])
	case sameName >= 0:
		c.failf(path+".name", "remove one", "%q is there twice", h.Name)
		c.conflict(inConfig(c.index, earlier[sameName].path))
	}
	a := h.Address
	switch {
	case !a.IsValid():
		c.failf(path, "address: 192.0.2.10, where the cluster's nodes reach it", "host %q has no address", h.Name)
	case !a.Is4() || a.IsUnspecified() || a.IsLoopback() || a.IsMulticast() || a.IsLinkLocalUnicast():
		c.failf(path+".address", "address: 192.0.2.10", "%s cannot be the address of a host: IPv4, and one that the cluster's nodes reach", a)
	case n.PodCIDR.Contains(a) || n.ServiceCIDR.Contains(a):
		c.failf(path+".address", "the address of the host in its own network", "%s is in a network of the cluster: VXLAN packets to it would go into the VXLAN", a)
	case sameAddress >= 0:
		c.failf(path+".address", "each host needs one of its own", "%s is there twice", a)
		c.conflict(inConfig(c.index, earlier[sameAddress].path))
	}
	c.exposed(path, h)
	if h.Size < n.HostPodCIDR.Bits() || h.Size > 30 || h.Size < n.NodeMask {
		c.failf(path+".podCIDRSize", "podCIDRSize: 28", "%d is not from %d to 30", h.Size, max(n.HostPodCIDR.Bits(), n.NodeMask))
	}
}

// MaxExposed is the number of Services that a host can expose. Each is a process there.
const MaxExposed = 64

// exposed checks the Services that ports of a host lead to.
func (c *checker) exposed(path string, h pools.ExternalHost) {
	if len(h.Expose) > MaxExposed {
		c.failf(path+".expose", "other hosts, or a Service with a ClusterIP", "a host exposes %d Services at most, and %q has %d", MaxExposed, h.Name, len(h.Expose))
		return
	}
	for i, e := range h.Expose {
		at := fmt.Sprintf("%s.expose[%d]", path, i)
		name, namespace, _ := strings.Cut(e.Service, ".")
		if !label.MatchString(name) || !label.MatchString(namespace) {
			c.failf(at+".service", "service: web.default, NAME.NAMESPACE", "%q is not the name of a Service", e.Service)
		}
		if e.Port < 1 || e.Port > 65535 {
			c.failf(at+".port", "port: 80, as the Service has it", "%d is not from 1 to 65535", e.Port)
		} else if e.HostPort < 1 || e.HostPort > 65535 {
			c.failf(at+".hostPort", "hostPort: 8080", "%d is not from 1 to 65535", e.HostPort)
		}
		if slices.ContainsFunc(h.Expose[:i], func(o pools.Exposed) bool { return o.HostPort == e.HostPort }) {
			c.failf(at+".hostPort", "hostPort: another one", "port %d of host %q leads to two Services", e.HostPort, h.Name)
		}
	}
}

// room checks that the networks of all hosts fit.
func (c *checker) room(n *pools.HostNetwork) {
	if !n.HostPodCIDR.IsValid() || !n.HostPodCIDR.Addr().Is4() {
		return
	}
	needed, room := 0, 1<<(32-n.HostPodCIDR.Bits())
	for i, h := range c.hosts {
		if h.Size > 0 && h.Size <= 32 {
			needed += 1 << (32 - h.Size)
		}
		if needed > room {
			c.failf(h.path, "a larger hostPodCIDR", "hostPodCIDR %s has %d addresses, and the hosts up to %q need %d", n.HostPodCIDR, room, h.Name, needed)
			c.conflict(inConfig(c.index, c.hosts[max(0, i-1)].path))
		}
	}
}

func contains(outer, inner netip.Prefix) bool {
	return outer.Bits() <= inner.Bits() && outer.Contains(inner.Addr())
}

// shared notes the hosts that an earlier cluster has, too, if both cannot be on one host:
// their pod or Service networks overlap, or they have the same VXLAN.
func (c *checker) shared(index int, earlier *pools.Cluster, hosts []placed) {
	if earlier.HostNetwork == nil || c.cluster.HostNetwork == nil {
		return
	}
	byAddress := map[netip.Addr]placed{}
	for _, h := range hosts {
		byAddress[h.Address] = h
	}
	for _, h := range c.hosts {
		if other, ok := byAddress[h.Address]; ok && h.Address.IsValid() {
			if err := conflict(earlier, c.cluster, other.ExternalHost, h.ExternalHost); err != nil {
				c.add(h.path, err)
				c.conflict(inConfig(index, other.path))
			}
		}
	}
}

// conflict returns why a host cannot be in both clusters; nil: it can.
func conflict(a, b *pools.Cluster, inA, inB pools.ExternalHost) error {
	at, x, y := inA.Address, a.HostNetwork, b.HostNetwork
	for _, p := range []netip.Prefix{x.PodCIDR, x.ServiceCIDR} {
		for _, q := range []netip.Prefix{y.PodCIDR, y.ServiceCIDR} {
			if p.IsValid() && q.IsValid() && p.Overlaps(q) {
				return pools.Hint("a host can be in clusters whose networks are apart", "%s is a host of clusters %q and %q, and %s overlaps %s", at, a.Name, b.Name, p, q)
			}
		}
	}
	for _, e := range inB.Expose {
		if slices.ContainsFunc(inA.Expose, func(f pools.Exposed) bool { return f.HostPort == e.HostPort }) {
			return pools.Hint("hostPort: another one, in one of them", "%s is a host of clusters %q and %q, and its port %d leads to Services of both", at, a.Name, b.Name, e.HostPort)
		}
	}
	if x.ProxyMode == y.ProxyMode {
		return pools.Hint("proxyMode: iptables in one of them", "%s is a host of clusters %q and %q, and both have proxyMode %s: two kube-proxies would delete each other's rules", at, a.Name, b.Name, x.ProxyMode)
	}
	if x.VNI == y.VNI {
		return pools.Hint("give one cluster's flannel another VNI", "%s is a host of clusters %q and %q, and both have VNI %d: the host has one interface flannel.%d", at, a.Name, b.Name, x.VNI, x.VNI)
	}
	return nil
}
