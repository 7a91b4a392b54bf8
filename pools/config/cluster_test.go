package config_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"drover/pools"
	"drover/pools/config"
	"drover/pools/config/decode"
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
		if !reflect.DeepEqual(got, want[i]) {
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

// TestHostedDefaults checks the defaults of a cluster whose control plane drover runs, and
// that the JSON of a control plane is read as it was written.
func TestHostedDefaults(t *testing.T) {
	farm, err := config.Parse("drover.yaml", []byte(`server: {interfaces: [eth1], address: 10.28.0.2, objects: {namespace: farm}}
subnets: [{cidr: 10.28.0.0/16}]
clusters:
  - {name: a, controlPlane: {version: v1.37.1}}
  - name: b
    deletionPolicy: Delete
    controlPlane:
      version: v1.36.4
      endpoint: {address: 10.28.0.7, port: 30443, serviceType: NodePort, annotations: {example.org/pool: b}}
      podSubnet: 10.8.0.0/16, fd00:8::/56
      serviceSubnet: 10.9.0.0/16,fd00:9::/112
      certSANs: [b.example.org]
      extraArgs: {apiServer: {v: "2"}}
      resources: {etcd: {requests: {cpu: 100m, memory: 0.5Gi}}}
      storage: {class: fast, size: 2Gi}
      addons: {flannel: false}
pools: [{name: web, cluster: a, image: debian-12}]
`))
	if err != nil {
		t.Fatal(err)
	}
	a, b := farm.Clusters()[0], farm.Clusters()[1]
	if want := (pools.SecretRef{Namespace: "farm", Name: "a-kubeconfig"}); a.SecretRef != want || a.DeletionPolicy != pools.Retain {
		t.Errorf("got secretRef %+v and deletionPolicy %q, want %+v and Retain", a.SecretRef, a.DeletionPolicy, want)
	}
	if b.DeletionPolicy != pools.Delete || b.SecretRef.Name != "b-kubeconfig" {
		t.Errorf("got %+v", b)
	}
	if a.IPFamilies != pools.IPv4Only || b.IPFamilies != pools.DualIPv4 {
		t.Errorf("got Nodes with %s and %s addresses, want those of the Services", a.IPFamilies, b.IPFamilies)
	}
	for want, cp := range map[string]*pools.ControlPlane{
		`{"version":"v1.37.1","replicas":1,"endpoint":{"port":6443,"serviceType":"LoadBalancer"},"podSubnet":"10.244.0.0/16","serviceSubnet":"10.96.0.0/12","storage":{"size":"8Gi"}}`: a.ControlPlane,
		`{"version":"v1.36.4","replicas":1,"endpoint":{"address":"10.28.0.7","port":30443,"serviceType":"NodePort","annotations":{"example.org/pool":"b"}},` +
			`"podSubnet":"10.8.0.0/16,fd00:8::/56","serviceSubnet":"10.9.0.0/16,fd00:9::/112","certSANs":["b.example.org"],"extraArgs":{"apiServer":{"v":"2"}},` +
			`"resources":{"etcd":{"requests":{"cpu":"100m","memory":"0.5Gi"}}},"storage":{"class":"fast","size":"2Gi"},"addons":{"flannel":false}}`: b.ControlPlane,
	} {
		got, err := json.Marshal(cp)
		if err != nil || string(got) != want {
			t.Errorf("got %s, %v; want %s", got, err, want)
		}
		var again pools.ControlPlane
		if err := decode.JSON(got, &again); err != nil || !reflect.DeepEqual(again, *cp) {
			t.Errorf("%s is read as %+v, %v", got, again, err)
		}
	}
}
