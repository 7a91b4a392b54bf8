// Package controlplane checks the control plane of a tenant as the config describes it,
// and sets its defaults.
//
// It does not know how a control plane is run, and which versions can be reached from the
// one that runs: only the controller sees that.
package controlplane

import (
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"drover/pools"
	"drover/pools/config/defaults"
	"drover/pools/config/mistake"
	"drover/pools/option"
)

// Mistake is a mistake in a control plane.
type Mistake struct {
	Path string // below controlPlane: endpoint.port
	Err  error  // mostly a [pools.HintError]
}

// SetDefaults sets the defaults of fields that are not set.
func SetDefaults(cp *pools.ControlPlane) {
	defaults.Set(&cp.Replicas, 1)
	defaults.Set(&cp.Endpoint.Port, 6443)
	defaults.Set(&cp.Endpoint.ServiceType, pools.LoadBalancer)
	if len(cp.PodSubnet) == 0 {
		cp.PodSubnet = pools.Prefixes{netip.MustParsePrefix("10.244.0.0/16")}
	}
	if len(cp.ServiceSubnet) == 0 {
		cp.ServiceSubnet = pools.Prefixes{netip.MustParsePrefix("10.96.0.0/12")}
	}
	defaults.Set(&cp.Storage.Size, "8Gi")
}

var (
	version  = regexp.MustCompile(`^v1\.[1-9][0-9]{0,2}\.[0-9]{1,3}$`)
	flag     = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)
	quantity = regexp.MustCompile(`^[0-9]{1,15}(\.[0-9]{1,9})?(m|k|[KMGTP]i?)?$`)
	registry = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*){0,8}$`)
	resource = regexp.MustCompile(`^[a-z0-9]([a-z0-9./-]{0,251}[a-z0-9])?$`)
)

// checker collects the mistakes of one control plane.
type checker struct{ found []Mistake }

func (c *checker) failf(path, hint, format string, args ...any) {
	c.found = append(c.found, Mistake{path, pools.Hint(hint, format, args...)})
}

// Check returns the mistakes of a control plane with its defaults. Its networks must not
// overlap the subnets of the nodes.
func Check(cp *pools.ControlPlane, subnets []pools.Subnet) []Mistake {
	c := &checker{}
	if !version.MatchString(cp.Version) {
		c.failf("version", "version: v1.37.1", "%q is not a version of Kubernetes", cp.Version)
	}
	if cp.Replicas != 1 {
		c.failf("replicas", "replicas: 1", "%d: control planes of several pods are not supported yet", cp.Replicas)
	}
	c.endpoint(&cp.Endpoint)
	c.networks(cp, subnets)
	for i, name := range cp.CertSANs {
		if _, err := netip.ParseAddr(name); err != nil && !option.IsDomain(name) {
			c.failf("certSANs", "certSANs: [api.example.org, 192.0.2.1]", "%q is neither a host name nor an address", name)
		}
		if slices.Contains(cp.CertSANs[:i], name) {
			c.failf("certSANs", "remove one", "%q is there twice", name)
		}
	}
	own := map[string][]string{}
	each(OwnFlags(), func(part string, flags []string) { own[part] = flags })
	each(cp.ExtraArgs, func(part string, args map[string]string) { c.args("extraArgs."+part, args, own[part]) })
	each(cp.Resources, func(part string, r pools.Resources) {
		c.amounts("resources."+part+".requests", r.Requests)
		c.amounts("resources."+part+".limits", r.Limits)
	})
	if !quantity.MatchString(cp.Storage.Size) {
		c.failf("storage.size", "size: 8Gi", "%q is not an amount of bytes", cp.Storage.Size)
	}
	if s := cp.Storage.Class; s != "" && !option.IsDomain(s) {
		c.failf("storage.class", "see kubectl get storageclass", "%q cannot be the name of a StorageClass", s)
	}
	if r := cp.ImageRepository; r != "" && !registry.MatchString(r) {
		c.failf("imageRepository", "imageRepository: registry.example.org/kubernetes", "%q cannot be the repository of images", r)
	}
	return c.found
}

// CheckName returns why a tenant with a control plane cannot have a name, which is a DNS
// label; nil if it can.
func CheckName(name string) error {
	switch {
	case len(name) > MaxName:
		return pools.Hint("shorten it", "the name has %d characters, and Kubernetes can name the pods of a control plane with %d at most", len(name), MaxName)
	case name != "" && name[0] >= '0' && name[0] <= '9':
		return pools.Hint("begin it with a letter: t"+name, "the names of its Services would begin with a digit")
	}
	return nil
}

// each calls f for the value of each part, by the part's name in the config.
func each[T any](p pools.ControlPlaneParts[T], f func(part string, v T)) {
	f("etcd", p.Etcd)
	f("apiServer", p.APIServer)
	f("controllerManager", p.ControllerManager)
	f("scheduler", p.Scheduler)
	f("konnectivity", p.Konnectivity)
}

func (c *checker) endpoint(e *pools.ControlPlaneEndpoint) {
	types := []string{string(pools.LoadBalancer), string(pools.NodePort), string(pools.ClusterIP)}
	if !slices.Contains(types, string(e.ServiceType)) {
		c.failf("endpoint.serviceType", mistake.Hint(string(e.ServiceType), types, "LoadBalancer"), "unknown type %q", e.ServiceType)
	}
	if !e.Address.IsValid() && e.ServiceType != pools.LoadBalancer {
		c.failf("endpoint.address", "address: 10.28.0.7, where nodes reach the API server", "a %s gives no address", e.ServiceType)
	}
	if e.Address.IsValid() && (e.Address.IsUnspecified() || e.Address.IsLoopback() || e.Address.IsMulticast() || e.Address.IsLinkLocalUnicast() || e.Address.Zone() != "" || e.Address.Is4In6()) {
		c.failf("endpoint.address", "address: 10.28.0.7", "%s cannot be the address of a server for nodes", e.Address)
	}
	switch p := e.Port; {
	case p < 1 || p > 65535:
		c.failf("endpoint.port", "port: 6443", "%d is not from 1 to 65535", p)
	case slices.Contains(Ports(), p):
		c.failf("endpoint.port", "port: 6443", "%d is that of another program of the control plane", p)
	case e.ServiceType == pools.NodePort && (p < 30000 || p > 32767):
		c.failf("endpoint.port", "port: 30443; the admin cluster's --service-node-port-range", "%d of a NodePort is not from 30000 to 32767", p)
	}
}

// networks checks that the networks of pods, Services and nodes are apart.
func (c *checker) networks(cp *pools.ControlPlane, subnets []pools.Subnet) {
	c.families("podSubnet", cp.PodSubnet)
	c.families("serviceSubnet", cp.ServiceSubnet)
	c.nodeNetworks(cp)
	for _, s := range cp.ServiceSubnet {
		if bits := s.Addr().BitLen() - s.Bits(); bits > 20 || bits < 3 {
			c.failf("serviceSubnet", "a /12 to a /29, or a /108 to a /125", "%s: an API server takes at most 2^20 addresses of Services, and needs some", s)
		}
		if i := slices.IndexFunc(cp.PodSubnet, s.Overlaps); i >= 0 {
			c.failf("serviceSubnet", "choose networks apart", "%s overlaps podSubnet %s", s, cp.PodSubnet[i])
		}
	}
	if a := cp.Endpoint.Address; a.IsValid() && len(cp.ServiceSubnet) > 0 && a.Is4() != cp.ServiceSubnet[0].Addr().Is4() {
		c.failf("serviceSubnet", "serviceSubnet: fd00:96::/112 for IPv6; with both write that of the endpoint first", "%s is not of the address family of the endpoint %s, so the API server would not start", cp.ServiceSubnet[0], a)
	}
	c.outside("podSubnet", cp.PodSubnet, cp.Endpoint.Address)
	c.outside("serviceSubnet", cp.ServiceSubnet, cp.Endpoint.Address)
	c.apart("podSubnet", cp.PodSubnet, subnets)
	c.apart("serviceSubnet", cp.ServiceSubnet, subnets)
}

// outside checks that the endpoint is not in a network of the tenant.
func (c *checker) outside(name string, nets pools.Prefixes, endpoint netip.Addr) {
	if i := slices.IndexFunc(nets, func(n netip.Prefix) bool { return n.Contains(endpoint) }); i >= 0 {
		c.failf("endpoint.address", "choose an address outside of the tenant's own networks", "%s is in %s %s, so nodes would look for it inside the tenant", endpoint, name, nets[i])
	}
}

// nodeNetworks checks that the network of pods has room for those of nodes, which are a /24 or a
// /64. kube-controller-manager would not start otherwise.
func (c *checker) nodeNetworks(cp *pools.ControlPlane) {
	for name := range cp.ExtraArgs.ControllerManager {
		if strings.HasPrefix(name, "node-cidr-mask-size") {
			return // they have another size
		}
	}
	for _, s := range cp.PodSubnet {
		switch bits := s.Bits(); {
		case s.Addr().Is4() && bits > 24:
			c.failf("podSubnet", "a /24 or larger, of which each node has a /24", "%s has no room for the /24 of a node", s)
		case s.Addr().Is6() && (bits < 48 || bits > 64):
			c.failf("podSubnet", "a /48 to a /64, of which each node has a /64", "%s: a controller manager divides a /48 to a /64 into networks of nodes", s)
		}
	}
}

// apart checks that networks do not overlap those of nodes.
func (c *checker) apart(path string, nets pools.Prefixes, subnets []pools.Subnet) {
	for _, n := range nets {
		i := slices.IndexFunc(subnets, func(s pools.Subnet) bool { return s.CIDR.IsValid() && s.CIDR.Overlaps(n) })
		if i >= 0 {
			c.failf(path, "choose a network apart from those of nodes", "%s overlaps subnet %s", n, subnets[i].CIDR)
		}
	}
}

// families checks that there is at most one network of each address family.
func (c *checker) families(path string, nets pools.Prefixes) {
	if len(nets) > 2 || len(nets) == 2 && nets[0].Addr().Is4() == nets[1].Addr().Is4() {
		c.failf(path, "write 10.244.0.0/16, or 10.244.0.0/16,fd00:244::/56", "%s are not one network of IPv4, of IPv6, or one of each", nets)
	}
	for _, n := range nets {
		if n != n.Masked() {
			c.failf(path, "write "+n.Masked().String(), "%s has host bits set", n)
		}
	}
}

func (c *checker) args(path string, args map[string]string, own []string) {
	for _, name := range slices.Sorted(maps.Keys(args)) {
		switch {
		case !flag.MatchString(name):
			c.failf(path, `write the flag without dashes: {v: "2"}`, "%q is not the name of a flag", name)
		case slices.Contains(own, name):
			c.failf(path, "remove it", "the flag %q is drover's own", name)
		case namesFile(name, args[name]) && !inPod(args[name]):
			c.failf(path, "remove it: docs/limits.md", "the flag %q names %q, which is not in the pod, so the program would not start: drover mounts no files for flags", name, args[name])
		}
	}
}

func (c *checker) amounts(path string, amounts map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		switch {
		case !resource.MatchString(name):
			c.failf(path, "cpu, memory", "%q is not the name of a resource", name)
		case !quantity.MatchString(amounts[name]):
			c.failf(path, "cpu: 100m, memory: 512Mi", "%s: %q is not an amount", name, amounts[name])
		}
	}
}
