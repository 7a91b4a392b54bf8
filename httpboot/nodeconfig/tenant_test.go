package nodeconfig_test

import (
	"bytes"
	"testing"

	"drover/httpboot/nodeconfig"
	"drover/pools"
	"drover/pools/resolve"
)

// TestTenant: nodes of a tenant have one key for the marks of their disks, and no other tenant has
// it. A gateway is of the tenant whose cluster it serves.
func TestTenant(t *testing.T) {
	k := nodeconfig.Maker{Secret: bytes.Repeat([]byte("s"), 32), Gateways: gateways{}}
	keys := map[string]string{}
	for _, tt := range []struct {
		plan resolve.Plan
		want string
	}{
		{resolve.Plan{Node: "n1", Pool: "p", Cluster: "a"}, "cluster a"},
		{resolve.Plan{Node: "n2", Pool: "q", Cluster: "a"}, "cluster a"},
		{resolve.Plan{Node: "gw1", Pool: "p", Gateway: "a"}, "cluster a"},
		{resolve.Plan{Node: "n3", Pool: "p", Cluster: "c"}, "cluster c"},
		{resolve.Plan{Node: "n4", Pool: "p"}, "pool p"},
		{resolve.Plan{Node: "n5", Pool: "a"}, "pool a"},
	} {
		c, err := k.Make(t.Context(), &tt.plan)
		if err != nil {
			t.Fatal(err)
		}
		if c.Tenant.Name != tt.want || c.Tenant.Change != pools.DiskWipe || len(c.Tenant.Key) != 32 {
			t.Errorf("%s: got %+v", tt.plan.Node, c.Tenant)
		}
		key := string(c.Tenant.Key)
		if of, ok := keys[key]; ok && of != tt.want {
			t.Errorf("%s has the key of %s", tt.want, of)
		}
		keys[key] = tt.want
	}
	if len(keys) != 4 {
		t.Errorf("got %d keys, want 4", len(keys))
	}
	p := resolve.Plan{Node: "n6", Pool: "p", DiskChange: pools.DiskKeep}
	if c, err := (nodeconfig.Maker{}).Make(t.Context(), &p); err != nil || c.Tenant.Key != nil || c.Tenant.Change != pools.DiskKeep {
		t.Errorf("without a secret: got %+v, %v", c.Tenant, err)
	}
}
