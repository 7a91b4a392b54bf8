// Package backends follows the pods behind a port of a Service, ready ones and those that
// end, as kube-proxy does. Services without a ClusterIP have them, too.
//
// It stores nothing but the EndpointSlices of that Service, and connects to no pod.
package backends

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"drover/kube/client"
	"drover/kube/cluster"
	"drover/pools"
)

// maxBackends is the number of pods that a Service may have here. kube-proxy has no such
// limit; a hostile API server would have none either.
const maxBackends = 10000

// Backend is a pod behind a Service.
type Backend struct {
	Address netip.AddrPort
	Ready   bool // false: it ends, and still serves; it is for the time when none is ready
}

// State is what a cluster says of a port of a Service.
type State struct {
	Backends []Backend // sorted by address
	Problem  string    // why there are none: no such Service or port, or the error of the API server
}

// Port is a port of a Service.
type Port struct {
	Namespace, Service string
	Number             int
}

// Cluster is a cluster whose Services are followed.
type Cluster struct{ cluster *cluster.Cluster }

// Open returns a cluster with the credentials of a kubeconfig file. Nothing is read before
// [Cluster.Follow].
func Open(name, kubeconfig string) *Cluster {
	return &Cluster{cluster.New(pools.Cluster{Name: name}, kubeconfig, time.Now)}
}

// Follow calls set whenever the backends of a port change, one call at a time, until ctx is
// done. While the API server does not answer they stay as they were.
func (c *Cluster) Follow(ctx context.Context, port Port, set func(State)) {
	f := &follower{port: port, set: set, slices: map[string]*discoveryv1.EndpointSlice{}}
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() {
		cluster.Follow(ctx, c.cluster, func(k client.Interface) cluster.Source[*corev1.ServiceList] {
			return k.CoreV1().Services(port.Namespace)
		},
			"metadata.name="+port.Service, cluster.Handler[*corev1.Service]{
				Listed: func(all []*corev1.Service) {
					f.change(func() {
						f.listed, f.service = true, nil
						for _, s := range all {
							f.service = s
						}
					})
				},
				Changed: func(s *corev1.Service) { f.change(func() { f.service = s }) },
				Deleted: func(*corev1.Service) { f.change(func() { f.service = nil }) },
				Tried:   f.tried,
			})
	})
	cluster.Follow(ctx, c.cluster, func(k client.Interface) cluster.Source[*discoveryv1.EndpointSliceList] {
		return labeled[*discoveryv1.EndpointSliceList]{k.DiscoveryV1().EndpointSlices(port.Namespace), discoveryv1.LabelServiceName + "=" + port.Service}
	}, "", cluster.Handler[*discoveryv1.EndpointSlice]{
		Listed: func(all []*discoveryv1.EndpointSlice) {
			f.change(func() {
				f.slices = map[string]*discoveryv1.EndpointSlice{}
				for _, s := range all {
					f.slices[s.Name] = s
				}
			})
		},
		Changed: func(s *discoveryv1.EndpointSlice) { f.change(func() { f.slices[s.Name] = s }) },
		Deleted: func(s *discoveryv1.EndpointSlice) { f.change(func() { delete(f.slices, s.Name) }) },
		Tried:   f.tried,
	})
}

// labeled is a Source of the objects that have a label.
type labeled[L runtime.Object] struct {
	cluster.Source[L]
	label string
}

// List implements [cluster.Source].
func (l labeled[L]) List(ctx context.Context, opts metav1.ListOptions) (L, error) {
	opts.LabelSelector = l.label
	return l.Source.List(ctx, opts)
}

// Watch implements [cluster.Source].
func (l labeled[L]) Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	opts.LabelSelector = l.label
	return l.Source.Watch(ctx, opts)
}

// follower has what is known of a port.
type follower struct {
	port Port
	set  func(State)

	mu      sync.Mutex
	listed  bool // the Service was asked for
	service *corev1.Service
	slices  map[string]*discoveryv1.EndpointSlice
	err     error // of the API server, last
	last    State
	said    bool
}

// change changes what is known, and passes it on if it differs.
func (f *follower) change(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
	now := f.state()
	if f.said && now.Problem == f.last.Problem && slices.Equal(now.Backends, f.last.Backends) {
		return
	}
	f.last, f.said = now, true
	f.set(now)
}

func (f *follower) tried(_ string, err error) {
	f.change(func() { f.err = err })
}

// state returns the backends. f.mu is held.
func (f *follower) state() State {
	name, ok := f.portName()
	switch {
	case !f.listed && f.err != nil:
		return State{Problem: f.err.Error()}
	case !f.listed:
		return State{Problem: "the cluster was not asked yet"}
	case f.service == nil:
		return State{Problem: fmt.Sprintf("namespace %s has no Service %s", f.port.Namespace, f.port.Service)}
	case !ok:
		return State{Problem: fmt.Sprintf("Service %s has no port %d of TCP", f.port.Service, f.port.Number)}
	}
	found := map[netip.AddrPort]bool{}
	for _, s := range f.slices {
		if s.AddressType == discoveryv1.AddressTypeIPv4 {
			add(found, s, name)
		}
	}
	var all []Backend
	for _, a := range slices.SortedFunc(maps.Keys(found), netip.AddrPort.Compare) {
		all = append(all, Backend{a, found[a]})
	}
	if len(all) == 0 {
		return State{Problem: fmt.Sprintf("Service %s has no ready pod", f.port.Service)}
	}
	return State{Backends: all}
}

// portName returns the name of the port: EndpointSlices have its target.
func (f *follower) portName() (string, bool) {
	if f.service == nil {
		return "", false
	}
	for _, p := range f.service.Spec.Ports {
		if int(p.Port) == f.port.Number && cmp.Or(p.Protocol, corev1.ProtocolTCP) == corev1.ProtocolTCP {
			return p.Name, true
		}
	}
	return "", false
}

// add adds the endpoints of a slice: whether they are ready, by address.
func add(found map[netip.AddrPort]bool, s *discoveryv1.EndpointSlice, port string) {
	for _, p := range s.Ports {
		name, protocol := "", corev1.ProtocolTCP
		if p.Name != nil {
			name = *p.Name
		}
		if p.Protocol != nil {
			protocol = *p.Protocol
		}
		if name != port || protocol != corev1.ProtocolTCP || p.Port == nil || *p.Port < 1 || *p.Port > 65535 {
			continue
		}
		for _, e := range s.Endpoints {
			ready := e.Conditions.Ready == nil || *e.Conditions.Ready
			ending := e.Conditions.Terminating != nil && *e.Conditions.Terminating && e.Conditions.Serving != nil && *e.Conditions.Serving
			if !ready && !ending || len(e.Addresses) == 0 || len(found) >= maxBackends {
				continue
			}
			if a, err := netip.ParseAddr(e.Addresses[0]); err == nil && a.Is4() && !a.IsLoopback() && !a.IsUnspecified() {
				at := netip.AddrPortFrom(a, uint16(*p.Port))
				found[at] = found[at] || ready
			}
		}
	}
}
