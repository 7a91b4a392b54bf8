package migrate

import "drover/pools"

// asTenants makes the clusters of a config tenants of an admin cluster: their kubeconfigs are
// in Secrets, because objects name no files of the server.
func (f *Farm) asTenants(c *pools.Config) {
	c.Server.Objects.Namespace = f.Namespace
	for i := range c.Clusters {
		cl := &c.Clusters[i]
		if cl.Kubeconfig == "" {
			continue
		}
		cl.Kubeconfig, cl.SecretRef = "", pools.SecretRef{Namespace: f.Namespace}
		f.Lost(pools.Origin{}, "the kubeconfig of cluster %q: kubectl create secret generic %s-kubeconfig -n %s --from-file=value=FILE", cl.Name, cl.Name, f.Namespace)
	}
}
