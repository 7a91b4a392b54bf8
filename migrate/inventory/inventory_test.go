package inventory_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/e2e/importtest"
	"drover/migrate"
	"drover/migrate/inventory"
	"drover/pools"
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

// TestTable: separators, marks and quotes of tables, and what is none.
func TestTable(t *testing.T) {
	for _, tt := range []struct{ name, text, want, err string }{
		{"commas", "name,mac\na,1\nb,2\n", "1:name|mac 2:a|1 3:b|2", ""},
		{"semicolons of a spreadsheet, with a byte order mark", "\ufeffname;mac\na;1,2\n", "1:name|mac 2:a|1,2", ""},
		{"tabs keep empty values", "name\tip\tmac\na\t\t1\n", "1:name|ip|mac 2:a||1", ""},
		{"bars", "name|mac\na|1\n", "1:name|mac 2:a|1", ""},
		{"quotes and lines in a value", "name,note\n\"a, b\",\"two\nlines\"\nc,\n", "1:name|note 2:a, b|two\nlines 4:c|", ""},
		{"lines of Windows, empty ones between", "name,mac\r\n\r\na,1\r\n", "1:name|mac 3:a|1", ""},
		{"rows of other lengths", "name,mac\na\nb,1,2\n", "1:name|mac 2:a 3:b|1|2", ""},
		{"empty", "", "", "an empty table"},
		{"an open quote", "name\n\"a", "", "quote"},
		{"too many rows", "name\n" + strings.Repeat("a\n", 200_001), "", "more than 200000 rows"},
	} {
		var got []string
		add := func(at pools.Origin, row []string) { got = append(got, fmt.Sprint(at.Line)+":"+strings.Join(row, "|")) }
		err := inventory.Table("t.csv", []byte(tt.text), func(at pools.Origin, row []string) error { add(at, row); return nil }, add)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) || !errors.Is(err, migrate.ErrFormat) {
				t.Errorf("%s: got error %v, want one of the format with %q", tt.name, err, tt.err)
			}
			continue
		}
		if err != nil || strings.Join(got, " ") != tt.want {
			t.Errorf("%s: got %q, %v, want %q", tt.name, strings.Join(got, " "), err, tt.want)
		}
	}
}

func TestField(t *testing.T) {
	for column, want := range map[string]string{
		"name": "name", "Host Name": "name", "MAC-Address(es)": "mac", "MAC Addresses": "mac", "boot_mac": "mac", "IPv4 Address": "ip", "ipv6": "ip6",
		"Host Group": "pool", "tag": "tags", "BMC password": "password", "": "", "☃": "", "colour": "",
	} {
		if got := inventory.Field(column); got != want {
			t.Errorf("%q: got field %q, want %q", column, got, want)
		}
	}
}

// TestSecrets: a table's passwords are in no config and no report.
func TestSecrets(t *testing.T) {
	r, c := importtest.Text(t, inventory.Read, "name,mac,ip,bmc,bmc user,bmc password\nm1,02:00:00:00:93:01,10.93.0.11,https://10.94.0.11/redfish,admin,hunter2\n")
	if p := c.Pools[0].Nodes[0].Power; p == nil || p.Driver != pools.IPMI || p.Address != "10.94.0.11" || p.User != "admin" || p.PasswordFile == "" {
		t.Errorf("got power %+v", p)
	}
	fixture.WantNoText(t, "config and report", string(r.Config())+importtest.Report(r), "hunter2")
	fixture.WantText(t, "the report", importtest.Report(r), "passwords are not written into a config")
}

// TestHostile: values that could be more than a value, and very many of them.
func TestHostile(t *testing.T) {
	r, c := importtest.Text(t, inventory.Read, "name,mac,ip,pool,tags,kernel,uuid\n"+
		"../../etc,02:00:00:00:93:01,10.93.0.11,../x,\"../../t,a b\",{{ .Secret }} x,\n"+
		"\"m2\n- name: evil\",02:00:00:00:93:02,10.93.0.12,\"p: [\",,,\n"+
		"m3,02:00:00:00:93:03,0.0.0.0,,,,not-a-uuid\n"+
		strings.Repeat("x", 1000)+",02:00:00:00:93:04,10.93.0.999,,,,\n")
	for _, p := range c.Pools {
		if p.CatchAll || strings.ContainsAny(p.Name, "/.: \n") {
			t.Errorf("pool %+v", p)
		}
		for _, n := range p.Nodes {
			if strings.ContainsAny(n.Name, "/: \n") || len(n.Name) > 63 || n.Name == "evil" {
				t.Errorf("node %+v", n)
			}
		}
	}
	for name := range c.Tags {
		if strings.ContainsAny(name, "/ \n") {
			t.Errorf("tag %q", name)
		}
	}
	if len(importtest.Open(c)) > 0 {
		t.Errorf("open %q\n%s", importtest.Open(c), importtest.Report(r))
	}
	var many strings.Builder
	many.WriteString("name,mac,ip\n")
	for i := range 3000 {
		fmt.Fprintf(&many, "m%d,02:00:00:00:%02x:%02x,10.93.%d.%d/16\n", i, i>>8, i&255, i>>8, i&255)
	}
	if _, c := importtest.Text(t, inventory.Read, many.String()); len(c.Pools[0].Nodes) < 2900 {
		t.Errorf("got %d of 3000 machines", len(c.Pools[0].Nodes))
	}
}
