package hosted_test

import (
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"drover/e2e/fixture"
	"drover/pools"
)

// testIPv6 makes a tenant whose nodes, pods and Services have IPv6 alone. The admin cluster
// has IPv4.
func (f *farm) testIPv6(t *testing.T) {
	tenant := with(cluster("tenant-a"), func(cp *pools.ControlPlane) {
		cp.Endpoint.Address = address6
		cp.PodSubnet, cp.ServiceSubnet = pools.Prefixes{netip.MustParsePrefix("fd00:244::/56")}, pools.Prefixes{netip.MustParsePrefix("fd00:96::/112")}
	})
	tenant.DeletionPolicy = pools.Delete
	f.controller.Set([]pools.Cluster{tenant})
	if s := f.ready("tenant-a", version); s.Endpoint != "[fd00:231::2]:6443" {
		t.Errorf("endpoint %s", s.Endpoint)
	}
	administrator := f.file(t, "tenant-a-admin")
	service, err := f.people.CoreV1().Services(namespace).Get(t.Context(), "tenant-a-api", metav1.GetOptions{})
	if err != nil || service.Spec.IPFamilyPolicy == nil || *service.Spec.IPFamilyPolicy != corev1.IPFamilyPolicyPreferDualStack {
		t.Errorf("the Service is %+v, %v; want an address of IPv6 where the admin cluster has some", service.Spec, err)
	}
	f.wantFields(t, administrator, map[string]string{
		"service kubernetes -n default .spec.clusterIP":   "fd00:96::1",
		"service kube-dns -n kube-system .spec.clusterIP": "fd00:96::a",
	})
	f.wantKubeadmJoin(t, administrator, "[fd00:231::2]:6443")
	if f.kubelet.programs["konnectivity-server"] != "" {
		if c := f.servedAt("[fd00:231::2]:8132"); len(c.IPAddresses) == 0 || !c.IPAddresses[0].Equal(address6.AsSlice()) {
			t.Errorf("the konnectivity-server's certificate is for %v", c.IPAddresses)
		}
	}
	f.wantGone(t)
}

// testDualStack makes a tenant whose nodes, pods and Services have IPv4 and IPv6: nodes get a
// network of pods of each family, and Services an address of each.
func (f *farm) testDualStack(t *testing.T) {
	tenant := with(cluster("tenant-a"), func(cp *pools.ControlPlane) {
		cp.PodSubnet = pools.Prefixes{netip.MustParsePrefix("10.244.0.0/16"), netip.MustParsePrefix("fd00:244::/56")}
		cp.ServiceSubnet = pools.Prefixes{netip.MustParsePrefix("10.96.0.0/16"), netip.MustParsePrefix("fd00:96::/108")}
	})
	tenant.DeletionPolicy = pools.Delete
	f.controller.Set([]pools.Cluster{tenant})
	f.ready("tenant-a", version)
	administrator := f.file(t, "tenant-a-admin")
	admin := kubernetes.NewForConfigOrDie(f.load(administrator))
	if _, err := admin.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	fixture.Eventually(t, "the Node has networks of pods", func() bool {
		n, err := admin.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
		return err == nil && len(n.Spec.PodCIDRs) > 0
	})
	const both = `{apiVersion: v1, kind: Service, metadata: {name: both, namespace: default}, spec: {ipFamilyPolicy: RequireDualStack, ports: [{port: 80}]}}`
	if _, err := f.admin.KubectlAs(t.Context(), administrator, strings.NewReader(both), "create", "-f", "-"); err != nil {
		t.Error(err)
	}
	f.wantFields(t, administrator, map[string]string{
		"node n1 .spec.podCIDRs":                             `["10.244.0.0/24","fd00:244::/64"]`,
		"service kubernetes -n default .spec.clusterIPs":     `["10.96.0.1"]`, // the API server gives it one
		"service kube-dns -n kube-system .spec.clusterIPs":   `["10.96.0.10","fd00:96::a"]`,
		"service both -n default .spec.ipFamilies":           `["IPv4","IPv6"]`,
		"configmap kube-proxy -n kube-system .metadata.name": "kube-proxy",
	})
	f.wantKubeadmJoin(t, administrator, "10.231.0.2:6443")
	f.wantGone(t)
}

// wantFields fails the test unless fields of objects of a tenant are as wanted: resource,
// name, flags and, last, the field.
func (f *farm) wantFields(t *testing.T, administrator string, want map[string]string) {
	t.Helper()
	for what, want := range want {
		words := strings.Fields(what)
		last := len(words) - 1
		got, err := f.admin.KubectlAs(t.Context(), administrator, nil, append([]string{"get", "-o", "jsonpath={" + words[last] + "}"}, words[:last]...)...)
		if err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", what, got, err, want)
		}
	}
}
