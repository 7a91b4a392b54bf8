package tenants_test

import (
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"drover/tenants"
)

func TestUnassigned(t *testing.T) {
	ingress := func(addresses ...string) (all []corev1.LoadBalancerIngress) {
		for _, a := range addresses {
			all = append(all, corev1.LoadBalancerIngress{IP: a})
		}
		return all
	}
	for _, tt := range []struct {
		name     string
		kind     corev1.ServiceType
		endpoint string
		given    []corev1.LoadBalancerIngress
		want     string
	}{
		{"given", corev1.ServiceTypeLoadBalancer, "10.28.0.7", ingress("10.28.0.7"), ""},
		{"one of two", corev1.ServiceTypeLoadBalancer, "fd00::7", ingress("10.28.0.7", "fd00:0::7"), ""},
		{"none yet", corev1.ServiceTypeLoadBalancer, "10.28.0.7", nil, "has no address yet"},
		{"another", corev1.ServiceTypeLoadBalancer, "10.28.0.7", ingress("10.28.0.90"), "the address 10.28.0.90, not endpoint.address"},
		{"a name", corev1.ServiceTypeLoadBalancer, "10.28.0.7", []corev1.LoadBalancerIngress{{Hostname: "lb.example.org"}}, "the address lb.example.org, not"},
		{"no load balancer", corev1.ServiceTypeNodePort, "10.28.0.7", nil, ""},
	} {
		s := &corev1.Service{Spec: corev1.ServiceSpec{Type: tt.kind}, Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: tt.given}}}
		got := tenants.Unassigned(s, netip.MustParseAddr(tt.endpoint))
		if !strings.Contains(got, tt.want) || tt.want == "" && got != "" {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}
