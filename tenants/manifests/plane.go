package manifests

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strconv"

	"drover/pools"
	"drover/pools/config/controlplane"
)

// Labels of all objects in the admin cluster.
const (
	ManagedBy     = "app.kubernetes.io/managed-by"
	Drover        = "drover" // the value of ManagedBy
	TenantLabel   = "drover.dev/tenant"
	VersionNote   = "drover.dev/version"         // annotation: the version of a control plane
	DeletionNote  = "drover.dev/deletion-policy" // annotation of the StatefulSet
	partLabel     = "drover.dev/part"
	planePart     = "control-plane"
	DataVolume    = "data" // etcd's
	Konnectivity  = controlplane.AgentPort
	clusterDomain = "cluster.local"
)

// MaxName is the longest name of a hosted tenant.
const MaxName = controlplane.MaxName

// Plane describes a control plane.
type Plane struct {
	Name      string // of the tenant
	Namespace string // of the admin cluster
	Spec      pools.ControlPlane
	Policy    pools.DeletionPolicy
	Serving   bool // drover approves the serving certificates of kubelets

	// Version runs; it differs from Spec.Version while that cannot be reached.
	Version string
	// Etcd is the oldest version of etcd that opens the data; "": any.
	Etcd string
	// Address is where nodes reach the API server; it may be that of a load balancer.
	Address netip.Addr
	// Ask is the address that the load balancer is asked for; invalid: any.
	Ask netip.Addr
	// AgentPort is where nodes reach the konnectivity-server: [Konnectivity], or the port
	// of a NodePort.
	AgentPort int
	// CA is the bundle of the tenant's CA, in PEM.
	CA []byte
	// KeysID changes with the keys that pods read only at their start.
	KeysID string
	// VNI is the number of the tenant's pod network on the wire.
	VNI int
}

// StatefulSet returns the name of the StatefulSet, and of the Service of its pods' names.
func (p *Plane) StatefulSet() string { return p.Name + "-control-plane" }

// Service returns the name of the Service that nodes and people dial.
func (p *Plane) Service() string { return p.Name + "-api" }

// ConfigMap returns the name of the ConfigMap of the pods.
func (p *Plane) ConfigMap() string { return p.Name + "-control-plane" }

// CASecret returns the name of the Secret of the tenant's CA.
func (p *Plane) CASecret() string { return p.Name + "-ca" }

// FrontProxySecret returns the name of the Secret of the CA of aggregated APIs.
func (p *Plane) FrontProxySecret() string { return p.Name + "-front-proxy-ca" }

// AccountsSecret returns the name of the Secret of the keys of ServiceAccounts.
func (p *Plane) AccountsSecret() string { return p.Name + "-sa" }

// LeafSecret returns the name of the Secret of what the CAs have signed.
func (p *Plane) LeafSecret() string { return p.Name + "-certificates" }

// DroverSecret returns the name of the Secret of drover's kubeconfig.
func (p *Plane) DroverSecret() string { return p.Name + "-kubeconfig" }

// AdminSecret returns the name of the Secret of the administrator's kubeconfig.
func (p *Plane) AdminSecret() string { return p.Name + "-admin" }

// Secrets returns the names of all Secrets, the CA's first.
func (p *Plane) Secrets() []string {
	return []string{p.CASecret(), p.FrontProxySecret(), p.AccountsSecret(), p.LeafSecret(), p.DroverSecret(), p.AdminSecret()}
}

// IsKey reports whether a Secret has keys, or what they have signed, rather than a way in for
// drover or people, who have no use for it without the control plane.
func (p *Plane) IsKey(secret string) bool {
	return secret != p.DroverSecret() && secret != p.AdminSecret()
}

// Labels returns the labels of the objects in the admin cluster.
func (p *Plane) Labels() map[string]string {
	return map[string]string{ManagedBy: Drover, TenantLabel: p.Name}
}

// Selector returns the labels of the pods.
func (p *Plane) Selector() map[string]string {
	return map[string]string{TenantLabel: p.Name, partLabel: planePart}
}

// PodLabels returns all labels of the pods.
func (p *Plane) PodLabels() map[string]string {
	l := p.Selector()
	l[ManagedBy] = Drover
	return l
}

// Endpoint returns host:port of the API server.
func (p *Plane) Endpoint() string {
	return netip.AddrPortFrom(p.Address, uint16(p.Spec.Endpoint.Port)).String()
}

// Local returns the URL of the API server inside the pod.
func (p *Plane) Local() string { return "https://127.0.0.1:" + strconv.Itoa(p.Spec.Endpoint.Port) }

// ServiceIPs returns the address of the Service "kubernetes" in each network of Services.
func (p *Plane) ServiceIPs() []string { return p.nth(1) }

// DNS returns the addresses of the Service of CoreDNS: the tenth of each network, or the
// last but one of a small network.
func (p *Plane) DNS() []string { return p.nth(10) }

// nth returns the address with a number in each network of Services.
func (p *Plane) nth(n int) (addresses []string) {
	for _, s := range p.Spec.ServiceSubnet {
		a, last := s.Addr(), s.Addr().BitLen()-s.Bits()
		for i := range n {
			if last < 4 && i >= 1<<last-2 {
				break
			}
			a = a.Next()
		}
		addresses = append(addresses, a.String())
	}
	return addresses
}

// Domain returns the DNS domain of the tenant's Services.
func (p *Plane) Domain() string { return clusterDomain }

// IPv6 reports whether nodes reach the API server by IPv6.
func (p *Plane) IPv6() bool { return p.Address.Is6() }

// WantsIPv6 reports whether nodes are to reach the API server by IPv6: its address is of the
// first network of Services.
func (p *Plane) WantsIPv6() bool {
	if a := p.Spec.Endpoint.Address; a.IsValid() || len(p.Spec.ServiceSubnet) == 0 {
		return a.Is6()
	}
	return p.Spec.ServiceSubnet[0].Addr().Is6()
}

// NodePort reports whether the Service is of this type.
func (p *Plane) NodePort() bool { return p.Spec.Endpoint.ServiceType == pools.NodePort }

// LoadBalancerIP returns the address that the load balancer is asked for, or "".
func (p *Plane) LoadBalancerIP() string {
	if p.Spec.Endpoint.ServiceType == pools.LoadBalancer && p.Ask.IsValid() {
		return p.Ask.String()
	}
	return ""
}

// Privileged reports whether a port of the API server needs a right to bind it.
func (p *Plane) Privileged() bool { return p.Spec.Endpoint.Port < 1024 }

// PodSubnet returns the pods' network of IPv4, or that of IPv6, or "".
func (p *Plane) PodSubnet(ipv6 bool) string {
	for _, s := range p.Spec.PodSubnet {
		if s.Addr().Is6() == ipv6 {
			return s.String()
		}
	}
	return ""
}

// on reports whether an add-on is to be installed.
func on(field *bool) bool { return field == nil || *field }

// Fingerprint returns a short hash of texts.
func Fingerprint(texts ...[]byte) string {
	h := sha256.New()
	for _, t := range texts {
		fmt.Fprintf(h, "%d ", len(t))
		h.Write(t)
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}
