package tenants

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"drover/kube/apply"
)

// front applies the Services, and finds out where nodes reach the control plane.
func (w *worker) front(ctx context.Context, k *keys) error {
	p := w.plane
	if err := w.chooseAddress(ctx, k); err != nil {
		return err
	}
	text, err := p.Front()
	if err != nil {
		return err
	}
	service := &corev1.Service{}
	var broken error
	err = w.applyOwned(ctx, text, func(o *unstructured.Unstructured) {
		if o.GetName() == p.Service() {
			broken = runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, service)
		}
	})
	if err := errors.Join(err, broken); err != nil {
		return err
	}
	if p.NodePort() {
		for _, port := range service.Spec.Ports {
			if port.Name == "konnectivity" {
				p.AgentPort = int(port.NodePort)
			}
		}
	}
	w.aside = ""
	if p.Spec.Endpoint.Address.IsValid() {
		w.aside = unassigned(service, p.Address)
	} else if err := w.given(service); err != nil {
		return err
	}
	return w.note(ctx, k, map[string]string{addressNote: p.Address.String()})
}

// chooseAddress chooses the address that nodes dial, as far as it is known, and the one that
// the load balancer is asked for. A tenant that is there again without its Service asks for
// the address of before, since its nodes dial that.
func (w *worker) chooseAddress(ctx context.Context, k *keys) error {
	p := w.plane
	if p.Address = p.Spec.Endpoint.Address; p.Address.IsValid() {
		p.Ask = p.Address
		return nil
	}
	before, err := netip.ParseAddr(k.secret.Annotations[addressNote])
	if err != nil {
		return nil // it never had one
	}
	p.Address = before
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Service"))
	o.SetName(p.Service())
	o.SetNamespace(p.Namespace)
	live, err := apply.Live(ctx, w.controller.dyn(), o)
	if err != nil {
		return err
	}
	if live != nil { // one that has an address is not asked for it: not every load balancer gives a named one
		asked, _, _ := unstructured.NestedString(live.Object, "spec", "loadBalancerIP")
		given, _, _ := unstructured.NestedSlice(live.Object, "status", "loadBalancer", "ingress")
		if asked == "" && len(given) > 0 {
			return nil
		}
	}
	p.Ask = before
	return nil
}

// given takes the address that the load balancer gave a Service.
func (w *worker) given(s *corev1.Service) error {
	other := ""
	for _, in := range s.Status.LoadBalancer.Ingress {
		a, err := netip.ParseAddr(in.IP)
		if err == nil && a.Is6() == w.plane.WantsIPv6() {
			w.plane.Address = a
			return nil
		}
		other = cmp.Or(other, in.IP, in.Hostname)
	}
	if other != "" {
		return &waiting{"NoAddress", fmt.Sprintf("the load balancer gave the Service %q %s, which is no address of the family of serviceSubnet; set endpoint.address", s.Name, other)}
	}
	return &waiting{"NoAddress", fmt.Sprintf("the Service %q has no address yet: does the admin cluster have a load balancer? Or set endpoint.address", s.Name)}
}

// unassigned returns why an endpoint may not lead to its Service, or "": the load balancer
// has given it no address, or another one.
func unassigned(s *corev1.Service, endpoint netip.Addr) string {
	if s.Spec.Type != corev1.ServiceTypeLoadBalancer {
		return ""
	}
	var given []string
	for _, in := range s.Status.LoadBalancer.Ingress {
		if a, err := netip.ParseAddr(in.IP); err == nil && a == endpoint {
			return ""
		}
		given = append(given, cmp.Or(in.IP, in.Hostname))
	}
	if len(given) == 0 {
		return fmt.Sprintf("; the Service %q has no address yet: does the admin cluster have a load balancer?", s.Name)
	}
	return fmt.Sprintf("; the load balancer gave the Service %q the address %s, not endpoint.address: some want it in endpoint.annotations", s.Name, strings.Join(given, ", "))
}
