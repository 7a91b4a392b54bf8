package kubefarm

import (
	"strconv"

	"drover/migrate"
	"drover/pools"
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
	text := func(into *string) func(string) error {
		return func(text string) error { *into = text; return nil }
	}
	networks := func(into *pools.Prefixes) func(string) error {
		return func(text string) error { return into.UnmarshalText([]byte(text)) }
	}
	api := v.Get("apiServer")
	c.endpoint(v)
	c.set("endpoint.serviceType", text((*string)(&c.Endpoint.ServiceType)), api.Get("service", "type"))
	for _, p := range pairsOf(api.Get("service", "annotations")) {
		c.set("endpoint.annotations."+p.Key, func(text string) error { set(&c.Endpoint.Annotations, p.Key, text); return nil }, p.Value)
	}
	c.set("replicas", func(text string) (err error) {
		c.Replicas, err = strconv.Atoi(text)
		return err
	}, v.Get("etcd", "replicaCount"))
	c.set("podSubnet", networks(&c.PodSubnet), v.Get("networking", "podSubnet"))
	c.set("podSubnet", networks(&c.PodSubnet), v.Get("controllerManager", "extraArgs", "cluster-cidr"))
	c.set("serviceSubnet", networks(&c.ServiceSubnet), v.Get("networking", "serviceSubnet"))
	c.set("serviceSubnet", networks(&c.ServiceSubnet), api.Get("serviceClusterIPRange"))
	c.set("serviceSubnet", networks(&c.ServiceSubnet), api.Get("extraArgs", "service-cluster-ip-range"))
	c.set("storage.size", text(&c.Storage.Size), v.Get("persistence", "size"))
	c.set("storage.class", text(&c.Storage.Class), v.Get("persistence", "storageClassName"))
	if on := v.Get("persistence", "enabled"); on.Is() {
		c.read[on] = true
		c.farm.Itself(on.Origin, "each etcd member has a volume (clusters[].controlPlane.storage)")
	}
	for _, kind := range []string{"dnsNames", "ipAddresses"} {
		for _, item := range v.Get("apiServer", "certSANs", kind).List() {
			c.set("certSANs", func(text string) error { c.CertSANs = append(c.CertSANs, text); return nil }, item)
		}
	}
	c.program("etcd", v.Get("etcd"), &c.ExtraArgs.Etcd, &c.Resources.Etcd)
	c.program("apiServer", api, &c.ExtraArgs.APIServer, &c.Resources.APIServer)
	c.program("controllerManager", v.Get("controllerManager"), &c.ExtraArgs.ControllerManager, &c.Resources.ControllerManager)
	c.program("scheduler", v.Get("scheduler"), &c.ExtraArgs.Scheduler, &c.Resources.Scheduler)
	c.program("konnectivity", v.Get("konnectivityServer"), &c.ExtraArgs.Konnectivity, &c.Resources.Konnectivity)
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
	c.farm.Taken(v.Origin, "clusters[].controlPlane."+field)
}

// addon reads whether the chart installs an add-on.
func (c *plane) addon(v *migrate.Value, into **bool) {
	if !v.IsPlain() {
		return
	}
	on := v.Is()
	*into, c.read[v] = &on, true
	c.farm.Taken(v.Origin, "clusters[].controlPlane.addons", on)
}

// endpoint reads where nodes reach the API server.
func (c *plane) endpoint(v *migrate.Value) {
	e := endpointOf(v)
	c.set("endpoint.address", func(text string) error { c.Endpoint.Address = e.address; return nil }, e.addressAt)
	c.set("endpoint.port", func(text string) error { c.Endpoint.Port = e.port; return nil }, e.portAt)
	if own := v.Get("apiServer", "extraArgs", "advertise-address"); own.IsPlain() && !c.read[own] {
		c.read[own] = true
		c.farm.Itself(own.Origin, "an API server of drover advertises the address of its endpoint")
	}
	c.set("certSANs", func(string) error { c.CertSANs = append(c.CertSANs, e.host); return nil }, e.nameAt)
}

// program reads the resources and the flags of a program.
func (c *plane) program(name string, v *migrate.Value, into *map[string]string, to *pools.Resources) {
	for i, kind := range []string{"requests", "limits"} {
		for _, p := range pairsOf(v.Get("resources", kind)) {
			amounts := []*map[string]string{&to.Requests, &to.Limits}[i]
			c.set("resources."+name+"."+kind+"."+p.Key, func(text string) error { set(amounts, p.Key, text); return nil }, p.Value)
		}
	}
	for _, p := range pairsOf(v.Get("extraArgs")) {
		switch {
		case c.read[p.Value] || !p.Value.IsPlain(): // the latter is reported as a leaf
		case p.Key == "feature-gates":
			c.read[p.Value] = true
			c.farm.Lost(p.Value.Origin, "feature gates are of one version of Kubernetes (extraArgs, for those that %s has)", c.Version)
		default:
			c.set("extraArgs."+name+"."+p.Key, func(text string) error { set(into, p.Key, text); return nil }, p.Value)
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
