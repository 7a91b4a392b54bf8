package migrate_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/migrate"
	"drover/migrate/dhcpd"
	"drover/migrate/inventory"
	"drover/migrate/kea"
	"drover/migrate/kubefarm"
	"drover/pools"
)

// nodesAre compares the nodes of a config: NAME MAC,MAC IP IP6.
func nodesAre(t *testing.T, r *migrate.Result, c *pools.Config, want ...string) {
	t.Helper()
	var got []string
	for _, p := range c.Pools {
		for _, n := range p.Nodes {
			line := []string{n.Name, strings.Join(macs(n.MACs), ",")}
			if n.IP.IsValid() {
				line = append(line, n.IP.String())
			}
			if n.IP6.IsValid() {
				line = append(line, n.IP6.String())
			}
			got = append(got, strings.Join(line, " "))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q\n%s", got, want, report(r))
	}
}

// TestKeaHostName: the option names a machine that has no name, and else it is reported.
func TestKeaHostName(t *testing.T) {
	r, c := imported(t, kea.Read, `{"Dhcp4": {"subnet4": [{"subnet": "10.28.0.0/24",
  "option-data": [{"name": "host-name", "data": "many"}],
  "reservations": [
    {"hw-address": "52:54:00:28:00:16", "ip-address": "10.28.0.16", "option-data": [{"name": "host-name", "data": "rack4-n16"}]},
    {"hw-address": "52:54:00:28:00:17", "ip-address": "10.28.0.17", "option-data": [{"code": 12, "data": "n17"}], "hostname": "n17-mgmt"}]}]}}`)
	nodesAre(t, r, c, "rack4-n16 52:54:00:28:00:16 10.28.0.16", "n17-mgmt 52:54:00:28:00:17 10.28.0.17")
	fixture.WantText(t, "the report", report(r), `input:4: taken: Dhcp4.subnet4[0].reservations[0].option-data[0] (host-name): pools[].nodes[].name: rack4-n16`,
		`input:5: not taken: Dhcp4.subnet4[0].reservations[1].option-data[0] (12): host name "n17": the node is named "n17-mgmt"`, `input:2: not taken: Dhcp4.subnet4[0].option-data[0] (host-name): host name "many"`)
}

// TestKeaInclude: files that a config includes are read, whatever part of JSON they hold, and
// the report has their names and lines.
func TestKeaInclude(t *testing.T) {
	t.Chdir(fixture.Tree(t, map[string]string{
		"kea.json": `{ "Dhcp4": { // <?include "nowhere.json"?>
  "comment": "# no /* comment",
  "subnet4": <?include "sub/subnets.json"?>,
  <?include "options.json"?>
}}`,
		"sub/subnets.json": "[ {\"subnet\": \"10.28.0.0/24\",\n \"reservations\": [ <?include \"one.json\"?> ] } ]",
		"sub/one.json":     "# a machine\n{\"hw-address\": \"52-54-00-28-00-11\", \"ip-address\": \"10.28.0.11\", \"hostname\": \"m1.\",\n \"option-data\": [{\"name\": \"ntp-servers\", \"data\": \"x\"}]}",
		"options.json":     "\"option-data\": [{\"name\": \"domain-name-servers\", \"data\": \"10.28.0.53\"}]",
		"gone.json":        "{\"Dhcp4\":\n <?include \"nowhere.json\"?> }",
		"loop.json":        "{\"Dhcp4\": <?include \"loop.json\"?> }",
	}))
	i := migrate.Import{Read: func(f *migrate.Farm) error { return kea.Read(f, []string{"kea.json"}) }}
	r, err := i.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	fixture.WantText(t, "the config", string(r.Config()), "name: m1", "10.28.0.53")
	fixture.WantText(t, "the report", report(r), "sub/one.json:3: not understood: Dhcp4.subnet4[0].reservations[0].option-data[0] (ntp-servers)")
	for file, want := range map[string]string{"gone.json": "gone.json:2: stat nowhere.json: no such file", "loop.json": "10 files in each other"} {
		if err := kea.Read(migrate.NewFarm(migrate.Options{}), []string{file}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", file, err, want)
		}
	}
}

// TestRowForEachCard: rows of one name are one machine, in a table of machines and in NetBox'
// export of interfaces.
func TestRowForEachCard(t *testing.T) {
	r, c := imported(t, inventory.Read, `name,mac,ip
m1c29,94:57:a5:d3:ec:f2,10.28.36.173/16
M1C29,94:57:a5:d3:ec:f3,
m1c30,94:57:a5:d3:ec:f4,10.28.36.174/16
m1c30,94:57:a5:d3:ec:f5,10.28.36.174/16
m1c31,94:57:a5:d3:ec:f6,10.28.36.175/16
m1c31,94:57:a5:d3:ec:f7,10.28.36.176/16
`)
	nodesAre(t, r, c, "m1c29 94:57:a5:d3:ec:f2,94:57:a5:d3:ec:f3 10.28.36.173", "m1c30 94:57:a5:d3:ec:f4,94:57:a5:d3:ec:f5 10.28.36.174",
		"m1c31 94:57:a5:d3:ec:f6,94:57:a5:d3:ec:f7 10.28.36.175")
	fixture.WantText(t, "the report", report(r), "input:7: no counterpart: ip: address 10.28.36.176")

	r, c = imported(t, inventory.Read, `Name,Device,Label,Enabled,Type,MTU,Mgmt only,IP Addresses,MAC Address,Tags
eno1,M1C29,,True,SFP+ (10GE),9000,False,10.28.36.173/16,94:57:A5:D3:EC:F2,netboot
eno2,M1C29,,True,SFP+ (10GE),9000,False,,94:57:A5:D3:EC:F3,netboot
eno1,M1C30,,True,SFP+ (10GE),,False,10.28.36.174/16,94:57:A5:D3:EC:F4,"netboot,storage"
iLO5,M1C30,,True,1000BASE-T (1GE),,False,10.29.0.30/16,94:57:A5:D3:EC:FA,
eno1,M1C31,,True,SFP+ (10GE),,False,10.28.36.175/16,94:57:A5:D3:EC:F5,
oob,M1C31,,True,1000BASE-T (1GE),,True,10.29.0.31/16,94:57:A5:D3:EC:FB,
`)
	nodesAre(t, r, c, "m1c29 94:57:a5:d3:ec:f2,94:57:a5:d3:ec:f3 10.28.36.173", "m1c30 94:57:a5:d3:ec:f4 10.28.36.174", "m1c31 94:57:a5:d3:ec:f5 10.28.36.175")
	for i, address := range []string{"", "10.29.0.30", "10.29.0.31"} {
		if n := c.Pools[0].Nodes[i]; address != "" && (n.Power == nil || n.Power.Address != address) {
			t.Errorf("%s has power %+v, want %s", n.Name, n.Power, address)
		}
	}
	if len(c.Subnets) != 1 {
		t.Errorf("subnets %v: that of the management processors is none", c.Subnets)
	}
}

// TestDhcpdNested: blocks of dhcpd are read wherever they stand, with what those around them say.
func TestDhcpdNested(t *testing.T) {
	r, c := imported(t, dhcpd.Read, `group outer { option ntp-servers 10.28.0.3; option dhcp6.name-servers fd00:28::53;
  shared-network floor { default-lease-time 600;
    group inner { subnet 10.28.0.0 netmask 255.255.255.0 { pool { range 10.28.0.100 10.28.0.150;
      host m1 { hardware ethernet 52:54:00:28:00:11; fixed-address 10.28.0.11; } } } }
    subnet6 fd00:28::/64 { group { deny booting; host m2 { hardware ethernet 52:54:00:28:00:12; fixed-address 10.28.0.12; } } }
    host m3 { hardware ethernet 52:54:00:28:00:13; fixed-address 10.28.0.13, fd00:28::13; } } }
`)
	nodesAre(t, r, c, "m2 52:54:00:28:00:12 10.28.0.12", "m1 52:54:00:28:00:11 10.28.0.11", "m3 52:54:00:28:00:13 10.28.0.13 fd00:28::13")
	for i, want := range []string{"[outer group-1] true", "[outer inner] false", "[outer] false"} {
		if n := c.Pools[0].Nodes[i]; fmt.Sprint(n.Tags, n.Ignore) != want {
			t.Errorf("%s has %v %v, want %s", n.Name, n.Tags, n.Ignore, want)
		}
	}
	for _, s := range c.Subnets {
		if s.Network != "floor" || s.Lease.String() != "10m" || s.Is6() && fmt.Sprint(s.DNS) != "[fd00:28::53]" {
			t.Errorf("subnet %+v", s)
		}
	}
	if got := opened(c); !slices.Equal(got, []string{leased}) {
		t.Errorf("open %q", got)
	}
}

// TestOneAddressInNoNetwork: a machine with two addresses, of which one is in no network, has the
// other one.
func TestOneAddressInNoNetwork(t *testing.T) {
	r, c := imported(t, conf, `dhcp-range=10.28.0.0,static,255.255.255.0
dhcp-range=fd00:29::,static,64
dhcp-host=52:54:00:28:00:11,10.28.0.11,[fd00:28::11],m1
dhcp-host=52:54:00:28:00:12,10.99.0.12,[fd00:29::12],m2
dhcp-host=52:54:00:28:00:13,10.28.0.13,[fd00:29::13],m3,10.28.0.14,[fd00:29::14]
dhcp-host=52:54:00:28:00:15,10.99.0.15,[fd00:28::15],m5
`)
	nodesAre(t, r, c, "m1 52:54:00:28:00:11 10.28.0.11", "m2 52:54:00:28:00:12 fd00:29::12", "m3 52:54:00:28:00:13 10.28.0.13 fd00:29::13")
	fixture.WantText(t, "the report", report(r), "input:3: left out: dhcp-host: machine m1: address fd00:28::11 is in none of the networks", "address 10.99.0.12 is",
		"input:5: no counterpart: dhcp-host: address 10.28.0.14", "input:5: no counterpart: dhcp-host: address fd00:29::14", "input:6: left out")
}

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
		t.Errorf("got  %q, port %d, replicas %d\nwant %q\n%s", got, p.Endpoint.Port, p.Replicas, want, report(r))
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
