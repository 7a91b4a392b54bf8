package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"drover/pools"
	"drover/pools/config/controlplane"
	"drover/pools/config/defaults"
	"drover/pools/config/externalhost"
	"drover/pools/option"
)

// secretKey is the pattern of the keys of a Secret.
const secretKey = `^[-._a-zA-Z0-9]{1,253}$`

// credentials checks the kubeconfig or Secret of a cluster, and its drain timeout.
func (c *checker) credentials(path, about string, cl pools.Cluster) {
	ref := cl.SecretRef
	switch {
	case cl.ControlPlane != nil && (cl.Kubeconfig != "" || c.isSet(path+".secretRef")):
		c.failf(path+".controlPlane", "remove kubeconfig and secretRef: drover writes the Secret NAME-kubeconfig", "%s has a controlPlane, and credentials of another cluster", about)
	case cl.ControlPlane != nil:
	case cl.Kubeconfig != "" && c.isSet(path+".secretRef"):
		c.failf(path+".secretRef", "remove one of them", "%s has both a kubeconfig and a secretRef", about)
	case cl.Kubeconfig == "" && !c.isSet(path+".secretRef"):
		c.failf(path, "kubeconfig: "+cl.Name+".kubeconfig, or secretRef: {namespace: ...}", "%s has no kubeconfig", about)
	}
	if c.isSet(path + ".secretRef") {
		c.secretRef(path+".secretRef", about, ref)
	}
	if d := cl.Drain.Timeout.D(); d < time.Second || d > 24*time.Hour {
		c.failf(path+".drain.timeout", "5m suits most", "%s: drain timeout %s is not from 1s to 24h", about, cl.Drain.Timeout)
	}
}

// hostedDefaults sets the defaults of a cluster whose control plane drover runs.
func (c *checker) hostedDefaults(cl *pools.Cluster) {
	if cl.ControlPlane == nil {
		return
	}
	defaults.Set(&cl.DeletionPolicy, pools.Retain)
	if cl.Kubeconfig == "" && cl.SecretRef == (pools.SecretRef{}) {
		cl.SecretRef.Namespace = c.cfg.Server.Objects.Namespace
	}
	controlplane.SetDefaults(cl.ControlPlane)
	defaults.Set(&cl.IPFamilies, pools.FamiliesOf(cl.ControlPlane.ServiceSubnet))
}

// controlPlane checks the control plane of a cluster.
func (c *checker) controlPlane(path, about string, cl pools.Cluster) {
	if cl.ControlPlane == nil {
		if cl.DeletionPolicy != "" {
			c.failf(path+".deletionPolicy", "remove it, or add controlPlane: {version: ...}", "%s: deletionPolicy has no effect without a controlPlane", about)
		}
		return
	}
	if c.cfg.Server.Objects.Namespace == "" {
		c.failf(path+".controlPlane", "server: {objects: {namespace: drover}}", "%s: server.objects does not say in which namespace its controlPlane runs", about)
	}
	c.report(path+".name", about, controlplane.CheckName(cl.Name))
	services := pools.FamiliesOf(cl.ControlPlane.ServiceSubnet)
	for _, f := range cl.IPFamilies.All() {
		if !slices.Contains(services.All(), f) {
			c.failf(path+".ipFamilies", fmt.Sprintf("remove it, for %s", services), "%s: Nodes with %s addresses, and controlPlane.serviceSubnet has no network of that", about, f)
		}
	}
	c.report(path+".deletionPolicy", about, oneOf("deletionPolicy", string(cl.DeletionPolicy), string(pools.Retain), string(pools.Delete)))
	for _, m := range controlplane.Check(cl.ControlPlane, c.cfg.Subnets) {
		c.report(path+".controlPlane."+m.Path, about+": controlPlane."+m.Path, m.Err)
	}
}

// tenants checks clusters with a control plane against each other.
func (c *checker) tenants() {
	for _, m := range controlplane.Conflicts(c.cfg.Clusters) {
		c.report(fmt.Sprintf("clusters[%d].%s", m.Second, m.Path), fmt.Sprintf("cluster %q: %s", c.cfg.Clusters[m.Second].Name, m.Path), m.Err)
		c.conflict(c.at(fmt.Sprintf("clusters[%d].%s", m.First, m.Path)))
	}
}

func (c *checker) secretRef(path, about string, ref pools.SecretRef) {
	switch {
	case ref.Namespace == "" && !c.isSet(path+".namespace"):
		c.failf(path, "secretRef: {namespace: tenants}", "%s: its secretRef has no namespace", about)
	case !c.syntax.label.MatchString(ref.Namespace):
		c.failf(path+".namespace", "use a-z, 0-9 and '-', 63 at most", "%s: %q cannot be the name of a namespace", about, ref.Namespace)
	}
	if ref.Name != "" && (!option.IsDomain(ref.Name) || ref.Name != strings.ToLower(ref.Name)) {
		c.failf(path+".name", "use a-z, 0-9, '-' and '.', 253 at most", "%s: %q cannot be the name of a Secret", about, ref.Name)
	}
	if ref.Key != "" && !regexp.MustCompile(secretKey).MatchString(ref.Key) {
		c.failf(path+".key", "the key in the Secret's data, such as value or admin.conf", "%s: %q cannot be a key of a Secret", about, ref.Key)
	}
}

// hosts checks the hosts outside of a cluster.
func (c *checker) hosts(i int) {
	for _, m := range externalhost.Check(c.cfg, i) {
		c.report(m.Path, m.About, m.Err)
		c.conflict(c.at(m.Other))
	}
}
