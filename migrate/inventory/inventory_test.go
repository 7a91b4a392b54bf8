package inventory_test

import (
	"testing"

	"drover/e2e/fixture"
	"drover/e2e/importtest"
	"drover/migrate/inventory"
)

// TestRowForEachCard: rows of one name are one machine, in a table of machines and in NetBox'
// export of interfaces.
func TestRowForEachCard(t *testing.T) {
	r, c := importtest.Text(t, inventory.Read, `name,mac,ip
m1c29,94:57:a5:d3:ec:f2,10.28.36.173/16
M1C29,94:57:a5:d3:ec:f3,
m1c30,94:57:a5:d3:ec:f4,10.28.36.174/16
m1c30,94:57:a5:d3:ec:f5,10.28.36.174/16
m1c31,94:57:a5:d3:ec:f6,10.28.36.175/16
m1c31,94:57:a5:d3:ec:f7,10.28.36.176/16
`)
	importtest.WantNodes(t, r, c, "m1c29 94:57:a5:d3:ec:f2,94:57:a5:d3:ec:f3 10.28.36.173", "m1c30 94:57:a5:d3:ec:f4,94:57:a5:d3:ec:f5 10.28.36.174",
		"m1c31 94:57:a5:d3:ec:f6,94:57:a5:d3:ec:f7 10.28.36.175")
	fixture.WantText(t, "the report", importtest.Report(r), "input:7: no counterpart: ip: address 10.28.36.176")

	r, c = importtest.Text(t, inventory.Read, `Name,Device,Label,Enabled,Type,MTU,Mgmt only,IP Addresses,MAC Address,Tags
eno1,M1C29,,True,SFP+ (10GE),9000,False,10.28.36.173/16,94:57:A5:D3:EC:F2,netboot
eno2,M1C29,,True,SFP+ (10GE),9000,False,,94:57:A5:D3:EC:F3,netboot
eno1,M1C30,,True,SFP+ (10GE),,False,10.28.36.174/16,94:57:A5:D3:EC:F4,"netboot,storage"
iLO5,M1C30,,True,1000BASE-T (1GE),,False,10.29.0.30/16,94:57:A5:D3:EC:FA,
eno1,M1C31,,True,SFP+ (10GE),,False,10.28.36.175/16,94:57:A5:D3:EC:F5,
oob,M1C31,,True,1000BASE-T (1GE),,True,10.29.0.31/16,94:57:A5:D3:EC:FB,
`)
	importtest.WantNodes(t, r, c, "m1c29 94:57:a5:d3:ec:f2,94:57:a5:d3:ec:f3 10.28.36.173", "m1c30 94:57:a5:d3:ec:f4 10.28.36.174", "m1c31 94:57:a5:d3:ec:f5 10.28.36.175")
	for i, address := range []string{"", "10.29.0.30", "10.29.0.31"} {
		if n := c.Pools[0].Nodes[i]; address != "" && (n.Power == nil || n.Power.Address != address) {
			t.Errorf("%s has power %+v, want %s", n.Name, n.Power, address)
		}
	}
	if len(c.Subnets) != 1 {
		t.Errorf("subnets %v: that of the management processors is none", c.Subnets)
	}
}
