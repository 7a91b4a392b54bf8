package tenants

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drover/internal/printable"
)

// Status is the state of a hosted tenant, as its object reports it.
type Status struct {
	Endpoint     string             `json:"endpoint,omitempty"`     // host:port of the API server
	Version      string             `json:"version,omitempty"`      // the API server's
	Parts        []Part             `json:"parts,omitempty"`        // programs of the control plane
	Agents       int                `json:"agents"`                 // konnectivity agents that are connected
	Nodes        int                `json:"nodes"`                  // of the tenant
	NodesReady   int                `json:"nodesReady"`             // of these
	Certificates []Certificate      `json:"certificates,omitempty"` // by the time of their end
	VNI          int                `json:"vni,omitempty"`          // number of the pod network on the wire
	Conditions   []metav1.Condition `json:"conditions,omitempty"`
}

// Part is the state of a program of the control plane.
type Part struct {
	Name   string `json:"name"`
	Ready  bool   `json:"ready"`
	Detail string `json:"detail,omitempty"` // why it is not ready
}

// Certificate is a certificate and its end. Certificates but those of CAs are renewed well
// before.
type Certificate struct {
	Name string      `json:"name"`
	Ends metav1.Time `json:"ends"`
}

// The conditions of a tenant.
const (
	// Ready: the control plane runs in the version that is meant, and nodes can join.
	Ready = "Ready"
	// VersionAccepted: the version can be reached from the one that runs.
	VersionAccepted = "VersionAccepted"
	// Available: the API server answers.
	Available = "Available"
	// AgentsConnected: logs, exec and webhooks have a way to the nodes. False does not
	// make a tenant without nodes unready.
	AgentsConnected = "AgentsConnected"
)

const maxMessage = 1000 // bytes of a condition: tenants send any text

// Condition returns a condition, or nil.
func (s *Status) Condition(kind string) *metav1.Condition {
	return meta.FindStatusCondition(s.Conditions, kind)
}

// set sets a condition. The time of its last change stays unless its status changes.
func (s *Status) set(kind string, ok bool, reason, message string, now time.Time) {
	status := metav1.ConditionFalse
	if ok {
		status = metav1.ConditionTrue
	}
	s.put(kind, status, reason, message, now)
}

// unknown sets a condition that cannot be found out.
func (s *Status) unknown(kind, reason, message string, now time.Time) {
	s.put(kind, metav1.ConditionUnknown, reason, message, now)
}

func (s *Status) put(kind string, status metav1.ConditionStatus, reason, message string, now time.Time) {
	meta.SetStatusCondition(&s.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: printable.Line(message, maxMessage),
		LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
	})
}

// ready returns the names of the programs that are ready.
func (s *Status) ready() string {
	var names []string
	for _, p := range s.Parts {
		if p.Ready {
			names = append(names, p.Name)
		}
	}
	return strings.Join(names, " ")
}

// parts returns the state of the programs of a pod.
func parts(pod *corev1.Pod) (all []Part) {
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		p := Part{Name: s.Name, Ready: s.Ready}
		if !s.Ready {
			p.Detail = detail(&s)
		}
		all = append(all, p)
	}
	return all
}
