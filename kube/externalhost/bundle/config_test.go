package bundle_test

import (
	"net/netip"
	"strings"
	"testing"

	"drover/kube/externalhost/bundle"
	"drover/pools"
)

// TestConfig: a machine that boots as a gateway gets all of a bundle but its scripts for
// installing, and what is secret for root alone.
func TestConfig(t *testing.T) {
	files, units, err := bundle.Host{
		Name: "gw1", Cluster: "tenant", Address: netip.MustParseAddr("10.28.0.13"), PodCIDR: netip.MustParsePrefix("10.244.240.0/28"),
		Network: &pools.HostNetwork{
			PodCIDR: netip.MustParsePrefix("10.244.0.0/16"), ServiceCIDR: netip.MustParsePrefix("10.96.0.0/16"), VNI: 1, Port: 8472,
			ProxyMode: pools.ProxyNFTables, DNS: netip.MustParseAddr("10.96.0.10"), Domain: "cluster.local",
		},
		Expose: []pools.Exposed{{Service: "db.shop", Port: 5432, HostPort: 5432}}, Server: "https://192.0.2.1:6443", CA: []byte("CA\n"), Token: "secret",
	}.Config()
	if err != nil {
		t.Fatal(err)
	}
	const dir = "/etc/drover-host/tenant/"
	for name, mode := range map[string]string{"token": "0600", "kubeconfig": "0600", "ca.crt": "0644", "net-conf.json": "0644", "host.json": "0644", "renew.sh": "0755", "resolver.sh": "0755"} {
		if f, ok := files[dir+name]; !ok || f.Mode != mode || f.Content == "" {
			t.Errorf("%s: %t, mode %q, want %s", name, ok, f.Mode, mode)
		}
		delete(files, dir+name)
	}
	for path := range files {
		t.Errorf("%s is of no use on a gateway", path)
	}
	for name, enabled := range map[string]bool{
		"drover-flanneld-tenant.service": true, "drover-kube-proxy-tenant.service": true, "drover-host-renew-tenant.timer": true,
		"drover-host-renew-tenant.service": false, "drover-resolver-tenant.service": true, "drover-proxy-5432-tenant.service": true,
	} {
		if u, ok := units[name]; !ok || u.Enable != enabled || !strings.Contains(u.Content, "[Unit]") || strings.Contains(u.Content, "secret") {
			t.Errorf("unit %s: %t, %+v", name, ok, u)
		}
	}
	if len(units) != 6 {
		t.Errorf("%d units", len(units))
	}
}
