package kubefarm_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"drover/e2e/importtest"
	"drover/migrate"
	"drover/migrate/kubefarm"
	"drover/pools"
)

// plane imports values of kubefarm's control plane as one that drover runs.
func plane(t *testing.T, values, version string) (*migrate.Result, pools.Cluster) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte(values+"nodePools: [{range: \"10.28.0.0,static,255.255.0.0\"}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := migrate.NewFarm(migrate.Options{Cluster: "hall", Kubernetes: version})
	if err := kubefarm.Read(f, []string{file}); err != nil {
		t.Fatal(err)
	}
	c := f.Finish()
	return &migrate.Result{Notes: f.Notes}, c.Clusters[0]
}

// TestKubefarmControlPlane: storage, port, annotations, resources and endpoint.
func TestKubefarmControlPlane(t *testing.T) {
	const values = `kubernetes:
  persistence: {enabled: true, storageClassName: local-path, size: 20Gi}
  apiServer:
    port: 7443
    service: {type: NodePort, port: 6443, nodePort: 31443, annotations: {metallb.universe.tf/address-pool: tenants}}
    certSANs: {ipAddresses: [10.28.0.5], dnsNames: [api.example.org]}
    resources: {requests: {cpu: 500m, memory: 1Gi}, limits: {memory: 2Gi}}
  etcd: {replicaCount: 3, resources: {requests: {cpu: 200m, memory: 512Mi}}}
  scheduler: {resources: {limits: {cpu: 1}}}
`
	r, c := plane(t, values, "v1.37.1")
	p := c.ControlPlane
	got := []string{p.Storage.Class, p.Storage.Size, string(p.Endpoint.ServiceType), p.Endpoint.Address.String(), p.Endpoint.Annotations["metallb.universe.tf/address-pool"],
		p.Resources.APIServer.Requests["cpu"], p.Resources.APIServer.Limits["memory"], p.Resources.Etcd.Requests["memory"], p.Resources.Scheduler.Limits["cpu"]}
	want := []string{"local-path", "20Gi", "NodePort", "10.28.0.5", "tenants", "500m", "2Gi", "512Mi", "1"}
	if !slices.Equal(got, want) || p.Endpoint.Port != 31443 || p.Replicas != 3 {
		t.Errorf("got  %q, port %d, replicas %d\nwant %q\n%s", got, p.Endpoint.Port, p.Replicas, want, importtest.Report(r))
	}
	for _, tt := range []struct{ values, endpoint string }{
		{values, "10.28.0.5:31443"},
		{"kubernetes: {apiServer: {service: {type: LoadBalancer, port: 8443, loadBalancerIP: 10.28.0.6}, extraArgs: {advertise-address: 10.28.0.7}}}\n", "10.28.0.6:8443"},
		{"kubernetes: {apiServer: {extraArgs: {advertise-address: 10.28.0.7}}}\n", "10.28.0.7:6443"},
		{"kubernetes: {controlPlaneEndpoint: \"api.example.org:7443\", apiServer: {extraArgs: {advertise-address: 10.28.0.7}}}\n", "api.example.org:7443"},
		{"kubernetes: {controlPlaneEndpoint: 10.28.0.8}\n", "10.28.0.8:6443"},
		{"kubernetes: {controlPlaneEndpoint: \"[fd00:28::8]:6444\"}\n", "[fd00:28::8]:6444"},
		{"kubernetes: {}\n", ""},
	} {
		if _, c := plane(t, tt.values, ""); c.Endpoint != tt.endpoint {
			t.Errorf("%s: endpoint %q, want %q", tt.values, c.Endpoint, tt.endpoint)
		}
		_, c := plane(t, tt.values, "v1.37.1")
		if e := c.ControlPlane.Endpoint; e.Address.IsValid() && !strings.HasPrefix(tt.endpoint, "api.") && !strings.Contains(tt.endpoint, e.Address.String()) {
			t.Errorf("%s: endpoint %+v, want %s", tt.values, e, tt.endpoint)
		}
	}
}
