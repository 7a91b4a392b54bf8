package pools_test

import (
	"testing"
	"time"

	"drover/pools"
)

// What a cluster gets that does not say more.
func TestClusterDefaults(t *testing.T) {
	farm, err := pools.Parse("drover.yaml", []byte(`server: {interfaces: [eth1], address: 10.28.0.2, adminKubeconfig: admin.kubeconfig}
subnets: [{cidr: 10.28.0.0/16}]
clusters:
  - {name: tenant-a, secretRef: {namespace: tenants}}
  - {name: tenant-b, secretRef: {namespace: tenants, name: b-admin-kubeconfig, key: admin.conf}, drain: {timeout: 90s}}
  - {name: tenant-c, kubeconfig: c.kubeconfig}
pools: [{name: web, cluster: tenant-a, image: debian-12}]
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []pools.Cluster{
		{Name: "tenant-a", SecretRef: pools.SecretRef{Namespace: "tenants", Name: "tenant-a-kubeconfig"}, Drain: pools.Drain{Timeout: pools.Duration(5 * time.Minute)}},
		{Name: "tenant-b", SecretRef: pools.SecretRef{Namespace: "tenants", Name: "b-admin-kubeconfig", Key: "admin.conf"}, Drain: pools.Drain{Timeout: pools.Duration(90 * time.Second)}},
		{Name: "tenant-c", Kubeconfig: "c.kubeconfig", Drain: pools.Drain{Timeout: pools.Duration(5 * time.Minute)}},
	}
	for i, got := range farm.Clusters() {
		got.Token = pools.TokenPolicy{}
		if got != want[i] {
			t.Errorf("got %+v, want %+v", got, want[i])
		}
	}
}
