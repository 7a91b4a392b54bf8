package controlplane

import (
	"net/netip"
	"slices"

	"drover/pools"
)

// Conflict is a mistake of two tenants: each alone could run.
type Conflict struct {
	First, Second int    // of the clusters
	Path          string // below each of them: controlPlane.endpoint
	Err           error  // names the first one
}

// Conflicts returns what clusters with a control plane cannot share.
func Conflicts(clusters []pools.Cluster) (found []Conflict) {
	for j := range clusters {
		for i := range j {
			if clusters[i].ControlPlane == nil || clusters[j].ControlPlane == nil || clusters[i].Name == clusters[j].Name {
				continue
			}
			if err := sameEndpoint(&clusters[i], &clusters[j]); err != nil {
				found = append(found, Conflict{i, j, "controlPlane.endpoint", err})
			}
			if err := sameSecret(&clusters[i], &clusters[j]); err != nil {
				found = append(found, Conflict{i, j, "name", err})
			}
		}
	}
	return found
}

// sameEndpoint returns why two tenants cannot have their endpoints. A NodePort is one of the
// whole admin cluster. All others have the port of konnectivity agents at their address.
func sameEndpoint(first, second *pools.Cluster) error {
	a, b := first.ControlPlane.Endpoint, second.ControlPlane.Endpoint
	ports := [2]bool{a.ServiceType == pools.NodePort, b.ServiceType == pools.NodePort}
	switch same := a.Address.IsValid() && a.Address == b.Address; {
	case ports == [2]bool{true, true} && a.Port == b.Port:
		return pools.Hint("give each tenant a port of its own", "the NodePort %d is that of cluster %q too", b.Port, first.Name)
	case same && a.Port == b.Port:
		return pools.Hint("give each tenant an address of its own", "%s is that of cluster %q too", netip.AddrPortFrom(b.Address, uint16(b.Port)), first.Name)
	case same && ports == [2]bool{}:
		return pools.Hint("give each tenant an address of its own", "%s is the address of cluster %q too, and the konnectivity agents of both dial port %d there", b.Address, first.Name, AgentPort)
	}
	return nil
}

// sameSecret returns why two tenants cannot have their names: a-ca is a Secret of "a", and
// a-front-proxy-ca would be one of "a" and of "a-front-proxy".
func sameSecret(first, second *pools.Cluster) error {
	theirs := Secrets(first.Name)
	for _, name := range Secrets(second.Name) {
		if slices.Contains(theirs, name) {
			return pools.Hint("rename one of them", "its Secret %q is that of cluster %q too", name, first.Name)
		}
	}
	return nil
}
