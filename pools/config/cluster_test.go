package config_test

import (
	"testing"
	"time"

	"drover/pools"
	"drover/pools/config"
)

// TestClusterDefaults checks the defaults of a cluster.
func TestClusterDefaults(t *testing.T) {
	farm, err := config.Parse("drover.yaml", []byte(`server: {interfaces: [eth1], address: 10.28.0.2, adminKubeconfig: admin.kubeconfig}
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
		got.Token, got.Approver = pools.TokenPolicy{}, ""
		if got != want[i] {
			t.Errorf("got %+v, want %+v", got, want[i])
		}
	}
}

func TestTokenDefaults(t *testing.T) {
	farm, err := config.Parse("drover.yaml", []byte(`server: {interfaces: [eth1], address: 10.28.0.2}
subnets: [{cidr: 10.28.0.0/16}]
clusters:
  - {name: a, kubeconfig: a}
  - {name: b, kubeconfig: b, token: {mode: shared}}
  - {name: c, kubeconfig: c, token: {mode: shared, ttl: 2h, rotate: 30m}, approver: cluster}
pools: [{name: web, cluster: a, image: debian-12}]
`))
	if err != nil {
		t.Fatal(err)
	}
	d := func(d time.Duration) pools.Duration { return pools.Duration(d) }
	want := []pools.Cluster{
		{Token: pools.TokenPolicy{Mode: pools.PerBoot, TTL: d(10 * time.Minute)}, Approver: pools.ByDrover},
		{Token: pools.TokenPolicy{Mode: pools.Shared, TTL: d(24 * time.Hour), Rotate: d(12 * time.Hour)}, Approver: pools.ByDrover},
		{Token: pools.TokenPolicy{Mode: pools.Shared, TTL: d(2 * time.Hour), Rotate: d(30 * time.Minute)}, Approver: pools.ByCluster},
	}
	for i, got := range farm.Clusters() {
		if got.Token != want[i].Token || got.Approver != want[i].Approver {
			t.Errorf("cluster %s: got %+v, %s; want %+v, %s", got.Name, got.Token, got.Approver, want[i].Token, want[i].Approver)
		}
	}
}
