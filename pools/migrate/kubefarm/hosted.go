package kubefarm

import (
	"net/netip"
	"strconv"

	"drover/pools"
	"drover/pools/migrate"
)

// plane is a control plane in the making.
type plane struct {
	pools.ControlPlane
	farm *migrate.Farm
	read map[*migrate.Value]bool // the values that were read
}

// hosted reads the values of the control plane, chart kubernetes-in-kubernetes, as those of
// one that drover runs. It is a new one: nothing of the old one's data comes along.
func (r *reader) hosted(v *migrate.Value) {
	c := &plane{pools.ControlPlane{Version: r.farm.Kubernetes}, r.farm, map[*migrate.Value]bool{}}
	address := func(text string) (err error) {
		c.Endpoint.Address, err = netip.ParseAddr(text)
		return err
	}
	text := func(into *string) func(string) error {
		return func(text string) error { *into = text; return nil }
	}
	c.set("endpoint.address", address, v.Get("apiServer", "extraArgs", "advertise-address"))
	c.set("endpoint.address", address, v.Get("apiServer", "service", "loadBalancerIP"))
	c.set("endpoint.port", func(text string) (err error) {
		c.Endpoint.Port, err = strconv.Atoi(text)
		return err
	}, v.Get("apiServer", "service", "port"))
	c.set("endpoint.serviceType", text((*string)(&c.Endpoint.ServiceType)), v.Get("apiServer", "service", "type"))
	c.set("podSubnet", func(text string) error { return c.PodSubnet.UnmarshalText([]byte(text)) }, v.Get("networking", "podSubnet"))
	c.set("serviceSubnet", func(text string) error { return c.ServiceSubnet.UnmarshalText([]byte(text)) }, v.Get("networking", "serviceSubnet"))
	c.set("podSubnet", func(text string) error { return c.PodSubnet.UnmarshalText([]byte(text)) }, v.Get("controllerManager", "extraArgs", "cluster-cidr"))
	c.set("serviceSubnet", func(text string) error { return c.ServiceSubnet.UnmarshalText([]byte(text)) }, v.Get("apiServer", "extraArgs", "service-cluster-ip-range"))
	c.set("storage.size", text(&c.Storage.Size), v.Get("etcd", "persistence", "size"))
	c.set("storage.class", text(&c.Storage.Class), v.Get("etcd", "persistence", "storageClassName"))
	for _, kind := range []string{"dnsNames", "ipAddresses"} {
		if list := v.Get("apiServer", "certSANs", kind); list.IsList() {
			for _, item := range list.Items {
				c.set("certSANs", func(text string) error { c.CertSANs = append(c.CertSANs, text); return nil }, item)
			}
		}
	}
	c.extraArgs(v.Get("etcd"), &c.ExtraArgs.Etcd)
	c.extraArgs(v.Get("apiServer"), &c.ExtraArgs.APIServer)
	c.extraArgs(v.Get("controllerManager"), &c.ExtraArgs.ControllerManager)
	c.extraArgs(v.Get("scheduler"), &c.ExtraArgs.Scheduler)
	c.extraArgs(v.Get("konnectivityServer"), &c.ExtraArgs.Konnectivity)
	c.addon(v.Get("kubeProxy", "enabled"), &c.Addons.KubeProxy)
	c.addon(v.Get("coredns", "enabled"), &c.Addons.CoreDNS)
	c.finish(v, migrate.Label(r.farm.Cluster))
}

// set reads a plain value into a field of the control plane.
func (c *plane) set(field string, set func(text string) error, v *migrate.Value) {
	if v.String() == "" {
		return
	}
	c.read[v] = true
	if err := set(v.String()); err != nil {
		c.farm.Unknown(v.Origin, "%v", err)
		return
	}
	c.farm.Taken(v.Origin, "clusters[].controlPlane.%s", field)
}

// addon reads whether the chart installs an add-on.
func (c *plane) addon(v *migrate.Value, into **bool) {
	if !v.IsPlain() {
		return
	}
	on := v.Is()
	*into, c.read[v] = &on, true
	c.farm.Taken(v.Origin, "clusters[].controlPlane.addons")
}

// extraArgs reads the flags of a program.
func (c *plane) extraArgs(v *migrate.Value, into *map[string]string) {
	for _, p := range pairsOf(v.Get("extraArgs")) {
		switch {
		case c.read[p.Value] || !p.Value.IsPlain(): // the latter is reported as a leaf
		case p.Key == "feature-gates":
			c.read[p.Value] = true
			c.farm.Lost(p.Value.Origin, "feature gates are of one version of Kubernetes (extraArgs, for those that %s has)", c.Version)
		default:
			c.set("extraArgs: --"+p.Key, func(text string) error { set(into, p.Key, text); return nil }, p.Value)
		}
	}
}

// finish adds the cluster, and reports what was not read.
func (c *plane) finish(v *migrate.Value, name string) {
	c.farm.AddCluster(pools.Cluster{Name: name, ControlPlane: &c.ControlPlane})
	c.farm.Lost(v.Origin, "the data of the control plane: drover makes a new one, empty, of version %s (restore a backup of its objects)", c.Version)
	v.Leaves(func(leaf *migrate.Value) {
		if !c.read[leaf] && leaf.Path != "kubernetes.enabled" && !leaf.IsNull() {
			c.farm.Lost(leaf.Origin, "drover has no such setting of a control plane (docs/hosted.md)")
		}
	})
}
