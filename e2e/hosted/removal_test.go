package hosted_test

import (
	"context"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/tenants"
)

// left returns the names of all that the admin cluster has of a tenant, as a list of words.
func (f *farm) left(t *testing.T, tenant string) string {
	t.Helper()
	out, err := f.admin.Kubectl(t.Context(), nil, "get", "statefulsets,services,networkpolicies,configmaps,pods,secrets", "-n", namespace, "-l", "drover.dev/tenant="+tenant, "-o", "name")
	if err != nil {
		return err.Error()
	}
	return strings.Join(strings.Fields(out), " ")
}

// wantLeft waits until the admin cluster has nothing else of a tenant.
func (f *farm) wantLeft(t *testing.T, tenant, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	fixture.Until(ctx, t, "what is left of "+tenant, func() (bool, error) {
		got := f.left(t, tenant)
		return got == want, fmt.Errorf("%s, want %s", got, want)
	})
}

func keysOf(tenant string) string {
	return strings.ReplaceAll("secret/T-ca secret/T-certificates secret/T-front-proxy-ca secret/T-sa", "T", tenant)
}

// testRemoval removes tenants whose removal is not the usual one.
func (f *farm) testRemoval(t *testing.T, tenant pools.Cluster) {
	others := func(more ...pools.Cluster) { f.controller.Set(append([]pools.Cluster{tenant}, more...)) }
	t.Run("never started", func(t *testing.T) {
		others(balanced(outside("never")))
		f.notReady("never", "NoAddress", "has no address yet")
		others()
		f.wantLeft(t, "never", "")
	})
	t.Run("policy that could not be applied", func(t *testing.T) {
		c := outside("broken")
		others(c)
		f.notReady("broken", "Starting", "")
		c = with(retained(c), func(cp *pools.ControlPlane) { cp.Resources.Etcd.Requests = map[string]string{"cpu": "a lot"} })
		others(c)
		f.notReady("broken", "Error", "quantities")
		f.stop()
		f.start() // it knows no policy but those in the cluster
		others()
		f.wantLeft(t, "broken", keysOf("broken"))
	})
	t.Run("policy that no round has seen", func(t *testing.T) {
		c := outside("hasty")
		others(c)
		f.notReady("hasty", "Starting", "")
		others(retained(c))
		others()
		f.wantLeft(t, "hasty", keysOf("hasty"))
	})
	t.Run("hosted no more", func(t *testing.T) { f.testMoved(t, others) })
	t.Run("killed on the way", func(t *testing.T) { f.testHalfway(t, others) })
	f.ready("tenant-a", version)
}

func retained(c pools.Cluster) pools.Cluster { c.DeletionPolicy = pools.Retain; return c }

// testMoved gives a tenant a kubeconfig in place of its control plane.
func (f *farm) testMoved(t *testing.T, others func(...pools.Cluster)) {
	const object = `{apiVersion: drover.dev/v1alpha1, kind: Tenant, metadata: {name: moved, namespace: farm}, spec: {%s}}`
	apply := func(spec string) {
		t.Helper()
		if out, err := f.admin.Kubectl(t.Context(), strings.NewReader(fmt.Sprintf(object, spec)), "apply", "-f", "-"); err != nil {
			t.Fatal(out, err)
		}
	}
	apply("controlPlane: {version: v1.37.1, endpoint: {serviceType: ClusterIP, address: 10.231.0.5}}")
	others(retained(outside("moved")))
	f.notReady("moved", "Starting", "")
	apply("kubeconfig: moved.conf")
	others(pools.Cluster{Name: "moved", Kubeconfig: "moved.conf"})
	f.wantLeft(t, "moved", keysOf("moved"))
	if _, err := f.admin.Kubectl(t.Context(), nil, "delete", "tenants.drover.dev", "moved", "-n", namespace); err != nil {
		t.Fatal(err)
	}
}

// testHalfway goes on with a removal that ended on its way.
func (f *farm) testHalfway(t *testing.T, others func(...pools.Cluster)) {
	c := retained(outside("halfway"))
	others(c)
	f.notReady("halfway", "Starting", "")
	f.stop()
	for _, args := range []string{"delete service halfway-api", "delete statefulset halfway-control-plane"} {
		if _, err := f.admin.Kubectl(t.Context(), nil, append(strings.Fields(args), "-n", namespace)...); err != nil {
			t.Fatal(err)
		}
	}
	f.start()
	others()
	f.wantLeft(t, "halfway", keysOf("halfway"))
	c.DeletionPolicy = pools.Delete // what is left comes back, and goes with the next policy
	others(c)
	f.notReady("halfway", "Starting", "")
	others()
	f.wantLeft(t, "halfway", "")
}

// testForeign gives objects of others the names of a tenant's. They stay as they are.
func (f *farm) testForeign(t *testing.T, tenant pools.Cluster) {
	core := f.people.CoreV1()
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "foreign-api"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	service, err := core.Services(namespace).Create(t.Context(), service, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "foreign-kubeconfig"}, Data: map[string][]byte{"value": []byte("a way to another cluster")}}
	if secret, err = core.Secrets(namespace).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.controller.Set([]pools.Cluster{tenant, outside("foreign")})
	f.notReady("foreign", "Error", `the Service "foreign-api" is not one of drover's, and stays as it is: remove it, or give the tenant another name`)
	f.controller.Set([]pools.Cluster{tenant})
	f.wantLeft(t, "foreign", "")
	if now, err := core.Services(namespace).Get(t.Context(), "foreign-api", metav1.GetOptions{}); err != nil || !reflect.DeepEqual(now, service) {
		t.Errorf("the Service is %+v, %v; want %+v", now, err, service)
	}
	if now, err := core.Secrets(namespace).Get(t.Context(), "foreign-kubeconfig", metav1.GetOptions{}); err != nil || !reflect.DeepEqual(now, secret) {
		t.Errorf("the Secret is %+v, %v; want %+v", now, err, secret)
	}

	// Of two tenants that need one Secret the second makes nothing.
	first, second := outside("pair"), outside("pair-front-proxy")
	f.controller.Set([]pools.Cluster{tenant, first})
	f.notReady("pair", "Starting", "")
	f.controller.Set([]pools.Cluster{tenant, first, second})
	f.notReady("pair-front-proxy", "Error", `the Secret "pair-front-proxy-ca" is one of the tenant "pair", and stays as it is: give one of the two tenants another name`)
	if got := f.left(t, "pair-front-proxy"); got != "" {
		t.Errorf("it made %s", got)
	}
	f.controller.Set([]pools.Cluster{tenant})
	f.wantLeft(t, "pair", "")
}

// testAddressStays gives a tenant the address of a load balancer. When it comes back after a
// removal it asks for the same.
func (f *farm) testAddressStays(t *testing.T, tenant pools.Cluster) {
	c := balanced(cluster("lb"))
	f.controller.Set([]pools.Cluster{tenant, c})
	f.notReady("lb", "NoAddress", "has no address yet")
	const given = `{"status": {"loadBalancer": {"ingress": [{"ip": "10.231.0.5"}]}}}`
	if _, err := f.people.CoreV1().Services(namespace).Patch(t.Context(), "lb-api", types.MergePatchType, []byte(given), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	f.until("lb", "it has the address", func(s tenants.Status) bool { return s.Endpoint == "10.231.0.5:6443" })
	if got := f.note(t, "lb-ca", "drover.dev/endpoint-address"); got != "10.231.0.5" {
		t.Errorf("the address %s is noted", got)
	}
	f.controller.Set([]pools.Cluster{tenant})
	f.wantLeft(t, "lb", keysOf("lb"))
	c.DeletionPolicy = pools.Delete
	f.controller.Set([]pools.Cluster{tenant, c})
	fixture.Retry(t, "the load balancer is asked for the address of before", func() error {
		s, err := f.people.CoreV1().Services(namespace).Get(t.Context(), "lb-api", metav1.GetOptions{})
		if err == nil && s.Spec.LoadBalancerIP != "10.231.0.5" {
			err = fmt.Errorf("it is asked for %q", s.Spec.LoadBalancerIP)
		}
		return err
	})
	f.notReady("lb", "NoAddress", "has no address yet")
	f.controller.Set([]pools.Cluster{tenant})
	f.wantLeft(t, "lb", "")
	f.ready("tenant-a", version)
}

// balanced returns a tenant that has the address that a load balancer gives.
func balanced(c pools.Cluster) pools.Cluster {
	return with(c, func(cp *pools.ControlPlane) {
		cp.Endpoint.Address, cp.Endpoint.ServiceType = netip.Addr{}, pools.LoadBalancer
	})
}
