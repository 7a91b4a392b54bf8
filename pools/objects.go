package pools

import (
	"net/netip"
	"time"
)

// ObjectGroup and ObjectVersion are the API group and version of the objects.
const (
	ObjectGroup   = "drover.dev"
	ObjectVersion = "v1alpha1"
)

// ObjectKind is a kind of object in the admin cluster. The spec of an object is an element
// of a [Config], and its name is the name of the element.
type ObjectKind string

// The kinds.
const (
	KindSubnet  ObjectKind = "Subnet"  // a [Subnet]; its name has no meaning
	KindTag     ObjectKind = "Tag"     // a [Tag]
	KindTenant  ObjectKind = "Tenant"  // a [Cluster]
	KindPool    ObjectKind = "Pool"    // a [Pool]
	KindMachine ObjectKind = "Machine" // a [Node] of a pool: a [PoolNode]
	KindChassis ObjectKind = "Chassis" // a [Chassis]

	KindExternalHost ObjectKind = "ExternalHost" // an [ExternalHost] of a cluster: a [ClusterHost]
)

// ObjectKinds lists the kinds in an order in which none refers to a later one.
var ObjectKinds = []ObjectKind{KindSubnet, KindTag, KindTenant, KindPool, KindMachine, KindChassis, KindExternalHost}

// Plural returns the name of the resource: tenants.
func (k ObjectKind) Plural() string {
	switch k {
	case KindSubnet:
		return "subnets"
	case KindTag:
		return "tags"
	case KindTenant:
		return "tenants"
	case KindPool:
		return "pools"
	case KindMachine:
		return "machines"
	case KindExternalHost:
		return "externalhosts"
	}
	return "chassis"
}

// ObjectStatus is the status of an object.
type ObjectStatus struct {
	// ObservedGeneration is the generation of the spec that drover has checked last.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions are Accepted (the spec is valid together with the whole farm, and in
	// force), Ready, and of a control plane that drover runs others.
	Conditions []Condition `json:"conditions,omitempty"`
}

// Condition is one aspect of the state of an object.
type Condition struct {
	Type               string    `json:"type"`                         // Accepted, Ready
	Status             string    `json:"status"`                       // True, False or Unknown
	ObservedGeneration int64     `json:"observedGeneration,omitempty"` // generation of the spec that the condition is about
	LastTransitionTime time.Time `json:"lastTransitionTime"`           // when the status changed last
	Reason             string    `json:"reason"`                       // one word for programs
	Message            string    `json:"message,omitempty"`            // what is wrong, and the remedy, as drover check writes them
}

// The conditions of objects.
const (
	Accepted = "Accepted"
	Ready    = "Ready"
)

// MachineStatus is the status of a Machine: its newest boot.
type MachineStatus struct {
	ObjectStatus
	Step    string    `json:"step,omitempty"`    // step of its newest boot, as drover boot show names it
	Since   time.Time `json:"since,omitzero"`    // when the step was reached
	Address string    `json:"address,omitempty"` // that it has from DHCP, or of its own
	Image   string    `json:"image,omitempty"`   // that it boots
	Tenant  string    `json:"tenant,omitempty"`  // cluster that it joins
	Node    string    `json:"node,omitempty"`    // Node in that cluster, once it has joined
	Error   string    `json:"error,omitempty"`   // why its boot does not go on

	ImageGeneration string `json:"imageGeneration,omitempty"` // digest of the image
}

// ExternalHostStatus is the status of an ExternalHost. Its condition Ready is that of its
// Node.
type ExternalHostStatus struct {
	ObjectStatus
	PodCIDR netip.Prefix `json:"podCIDR,omitzero"` // its part of hostPodCIDR; its first address is the host's own in the pod network
}

// TenantStatus is the status of a Tenant. Beside the conditions it is about a control plane
// that drover runs, whose controller writes it.
type TenantStatus struct {
	ObjectStatus
	Endpoint     string              `json:"endpoint,omitempty"`     // host:port of the API server
	Version      string              `json:"version,omitempty"`      // of the API server that runs
	Parts        []TenantPart        `json:"parts,omitempty"`        // programs of the control plane
	Agents       int                 `json:"agents,omitempty"`       // konnectivity agents that are connected
	Nodes        int                 `json:"nodes,omitempty"`        // Nodes of the tenant
	NodesReady   int                 `json:"nodesReady,omitempty"`   // Nodes that are Ready
	Certificates []TenantCertificate `json:"certificates,omitempty"` // by the time of their end
	VNI          int                 `json:"vni,omitempty"`          // number of the pod network on the wire
}

// TenantPart is a program of a control plane.
type TenantPart struct {
	Name   string `json:"name"`             // etcd, kube-apiserver, ...
	Ready  bool   `json:"ready"`            // it works
	Detail string `json:"detail,omitempty"` // why it does not
}

// TenantCertificate is a certificate of a control plane.
type TenantCertificate struct {
	Name string    `json:"name"` // of its key in the Secret
	Ends time.Time `json:"ends"` // when it is no longer valid
}
