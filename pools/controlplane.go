package pools

import (
	"net/netip"
	"strings"
)

// ControlPlane is the control plane of a tenant that runs as pods in the admin cluster.
type ControlPlane struct {
	Version       string               `json:"version"`                 // of Kubernetes: v1.37.1
	Replicas      int                  `json:"replicas,omitempty"`      // pods, each with its own etcd member; default 1
	Endpoint      ControlPlaneEndpoint `json:"endpoint,omitzero"`       // where nodes and people reach the API server
	PodSubnet     Prefixes             `json:"podSubnet,omitempty"`     // default 10.244.0.0/16
	ServiceSubnet Prefixes             `json:"serviceSubnet,omitempty"` // default 10.96.0.0/12
	CertSANs      []string             `json:"certSANs,omitempty"`      // further names and addresses in the API server's certificate

	ExtraArgs ControlPlaneParts[map[string]string] `json:"extraArgs,omitzero"` // flag name without dashes → value
	Resources ControlPlaneParts[Resources]         `json:"resources,omitzero"` // requests and limits
	Storage   ControlPlaneStorage                  `json:"storage,omitzero"`   // volume of an etcd member
	Addons    Addons                               `json:"addons,omitzero"`    // what drover installs in the tenant

	// ImageRepository has all images of the control plane and of the add-ons, by the last
	// part of their names. Default: the repositories of their projects.
	ImageRepository string `json:"imageRepository,omitempty"`
}

// ControlPlaneEndpoint is where nodes and people reach the API server of a tenant.
type ControlPlaneEndpoint struct {
	Address     netip.Addr        `json:"address,omitzero"`      // default: the one that the load balancer gives
	Port        int               `json:"port,omitempty"`        // default 6443; of a NodePort, the outer one
	ServiceType ServiceType       `json:"serviceType,omitempty"` // default LoadBalancer
	Annotations map[string]string `json:"annotations,omitempty"` // of the Service, for the load balancer
}

// ServiceType is the type of the Service of a control plane.
type ServiceType string

// The service types.
const (
	LoadBalancer ServiceType = "LoadBalancer"
	NodePort     ServiceType = "NodePort"
	ClusterIP    ServiceType = "ClusterIP" // something else leads to the pods
)

// ControlPlaneParts has a value for each program of a control plane.
type ControlPlaneParts[T any] struct {
	Etcd              T `json:"etcd,omitzero"`              // etcd
	APIServer         T `json:"apiServer,omitzero"`         // kube-apiserver
	ControllerManager T `json:"controllerManager,omitzero"` // kube-controller-manager
	Scheduler         T `json:"scheduler,omitzero"`         // kube-scheduler
	Konnectivity      T `json:"konnectivity,omitzero"`      // konnectivity-server
}

// Resources are the requests and limits of a container, by resource: {cpu: 100m,
// memory: 512Mi}.
type Resources struct {
	Requests map[string]string `json:"requests,omitempty"` // what the container is given for certain
	Limits   map[string]string `json:"limits,omitempty"`   // what it may take at most
}

// ControlPlaneStorage is the volume of an etcd member.
type ControlPlaneStorage struct {
	Class string `json:"class,omitempty"` // StorageClass; default: the admin cluster's default one
	Size  string `json:"size,omitempty"`  // default 8Gi
}

// Addons are the parts that drover installs in a tenant.
type Addons struct {
	KubeProxy *bool `json:"kubeProxy,omitempty"` // addresses of Services; default true
	CoreDNS   *bool `json:"coreDNS,omitempty"`   // DNS of Services; default true
	Flannel   *bool `json:"flannel,omitempty"`   // the pod network; default true
}

// DeletionPolicy is what remains of a deleted tenant with a control plane.
type DeletionPolicy string

// The deletion policies.
const (
	Retain DeletionPolicy = "Retain" // keys and data: the same tenant, created again, adopts them
	Delete DeletionPolicy = "Delete" // nothing
)

// Prefixes are networks, written as one text with commas: 10.244.0.0/16,fd00:244::/56.
type Prefixes []netip.Prefix

// String returns the written form.
func (p Prefixes) String() string {
	var b strings.Builder
	for i, prefix := range p {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(prefix.String())
	}
	return b.String()
}

// MarshalText writes the form of [Prefixes.String].
func (p Prefixes) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads networks between commas.
func (p *Prefixes) UnmarshalText(b []byte) error {
	*p = nil
	for text := range strings.SplitSeq(string(b), ",") {
		prefix, err := netip.ParsePrefix(strings.TrimSpace(text))
		if err != nil {
			return Hint("write 10.244.0.0/16, or 10.244.0.0/16,fd00:244::/56", "%q is not a network", text)
		}
		*p = append(*p, prefix)
	}
	return nil
}
