package backends

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func slice(name, port string, number int32, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: name}, AddressType: discoveryv1.AddressTypeIPv4,
		Ports: []discoveryv1.EndpointPort{{Name: &port, Port: &number}}, Endpoints: endpoints,
	}
}

func endpoint(address string, ready, serving, terminating bool) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &terminating}}
}

// TestState follows a Service from its begin to its end.
func TestState(t *testing.T) {
	var got []State
	f := &follower{port: Port{"default", "web", 80}, set: func(s State) { got = append(got, s) }, slices: map[string]*discoveryv1.EndpointSlice{}}
	service := &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "dns", Port: 80, Protocol: corev1.ProtocolUDP}, {Name: "http", Port: 80}, {Name: "tls", Port: 443}}}}
	a, b := netip.MustParseAddrPort("10.244.0.2:8080"), netip.MustParseAddrPort("10.244.0.3:8080")
	steps := []struct {
		name     string
		do       func()
		problem  string
		backends []Backend
	}{
		{"no answer", func() { f.err = errors.New("connection refused") }, "connection refused", nil},
		{"no Service", func() { f.err, f.listed = nil, true }, "namespace default has no Service web", nil},
		{"no such port", func() {
			f.service = &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolUDP}}}}
		}, "has no port 80 of TCP", nil},
		{"no pod", func() { f.service = service }, "has no ready pod", nil},
		{"other ports", func() { f.slices["tls"] = slice("tls", "tls", 8443, endpoint("10.244.0.9", true, true, false)) }, "", nil},
		{"a pod", func() { f.slices["1"] = slice("1", "http", 8080, endpoint("10.244.0.2", true, true, false)) }, "", []Backend{{a, true}}},
		{"no answer any more", func() { f.err = errors.New("connection refused") }, "", nil},
		{"another starts", func() {
			f.slices["2"] = slice("2", "http", 8080, endpoint("10.244.0.3", false, false, false))
		}, "", nil},
		{"it is ready, and the first ends", func() {
			f.slices["2"] = slice("2", "http", 8080, endpoint("10.244.0.3", true, true, false))
			f.slices["1"] = slice("1", "http", 8080, endpoint("10.244.0.2", false, true, true))
		}, "", []Backend{{a, false}, {b, true}}},
		{"the first serves no more", func() {
			f.slices["1"] = slice("1", "http", 8080, endpoint("10.244.0.2", false, false, true))
		}, "", []Backend{{b, true}}},
		{"hostile addresses", func() {
			f.slices["1"] = slice("1", "http", 8080, endpoint("127.0.0.1", true, true, false), endpoint("x", true, true, false), endpoint("::1", true, true, false), discoveryv1.Endpoint{})
		}, "", nil},
		{"no Service any more", func() { f.service = nil }, "has no Service web", nil},
	}
	for _, s := range steps {
		got = nil
		f.change(s.do)
		if s.problem == "" && s.backends == nil {
			if len(got) != 0 {
				t.Errorf("%s: a change: %+v", s.name, got)
			}
			continue
		}
		if len(got) != 1 || !strings.Contains(got[0].Problem, s.problem) || (got[0].Problem == "") != (s.problem == "") || !slices.Equal(got[0].Backends, s.backends) {
			t.Errorf("%s: got %+v, want %q and %v", s.name, got, s.problem, s.backends)
		}
	}
}
