package main

import (
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp"
	"drover/dhcp/bootprogram"
	"drover/e2e/fixture"
	"drover/httpboot/nodeconfig"
	"drover/pools"
	"drover/pools/config"
	"drover/pools/resolve"
)

// kubefarmValues is a farm of kubefarm with what its users have: options, labels, taints and
// kernel arguments by tag, units, and a script that writes a bond and a VLAN for netplan.
const kubefarmValues = `
kubernetes: {apiServer: {extraArgs: {advertise-address: 10.28.0.5}}}
ltsp:
  config:
    timezone: Europe/Prague
    options:
      KERNEL_PARAMETERS: console=ttyS0,115200
      POST_INIT_NETWORK: ". /etc/ltsp/bond.sh"
      FSTAB_DATA: nfs:/data /data nfs ro 0 0
    extraFiles:
      bond.sh: |
        mkdir -p /etc/netplan
        cat >/etc/netplan/00-config.yaml <<EOT
        network:
          version: 2
          bonds: {bond0: {macaddress: "${MAC_ADDRESS}", interfaces: [eno1, eno2], addresses: [${IPCONFIG_IPV4ADDR}/16]}}
          vlans: {bond0.2: {id: 2, link: bond0}}
        EOT
      watch.service: |
        [Service]
        ExecStart=/usr/bin/watch
        [Install]
        WantedBy=multi-user.target
nodePools:
  - range: 10.28.0.0,static,255.255.0.0,10.28.255.255,infinite
    nodes: [{name: m1c1, mac: "02:00:00:00:28:01,02:00:00:00:28:02", ip: 10.28.36.1}]
    tags: [storage]
  - range: 10.28.72.10,10.28.72.250,255.255.0.0,10.28.255.255,12h
    extraOpts: [{dhcp-generate-names: "tag:?"}]
tags:
  dhcpOptions:
    all: {router: 10.28.0.1, dns-server: 10.28.0.1, domain-name: example.org}
    storage: {ntp-server: 10.28.0.3, "252": "http://wpad/"}
  ltspOptions:
    storage: {KUBELET_EXTRA_ARGS_PODS: --max-pods=200}
  kubernetesLabels: {all: {role: base}, storage: {role: storage}}
  kubernetesTaints: {storage: [{key: role, value: storage, effect: NoSchedule}]}
`

// converted converts a farm of kubefarm, by way of objects of an admin cluster or not.
func converted(t *testing.T, format string) *resolve.Farm {
	t.Helper()
	t.Chdir(fixture.Tree(t, map[string]string{
		"values.yaml": kubefarmValues,
		"drover.yaml": "server: {interfaces: [eth1], address: 10.28.0.2, objects: {namespace: drover}}\n",
	}))
	args := "import kubefarm values.yaml --interface eth1 --address 10.28.0.2 --cluster hall --output "
	if format == "config" {
		args += "farm.yaml"
	} else {
		args += "objects.yaml --format objects"
	}
	if code, out, errs := drover(t, args); code != 0 {
		t.Fatalf("import: exit code %d\n%s%s", code, out, errs)
	}
	if format == "config" {
		farm, err := config.Load("farm.yaml")
		if err != nil {
			t.Fatal(err)
		}
		return farm
	}
	if code, out, errs := drover(t, "apply -f objects.yaml -c drover.yaml"); code != 0 {
		t.Fatalf("apply: exit code %d\n%s%s", code, out, errs)
	}
	farm, err := config.Load("drover.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return farm
}

// TestConvertedFarm: machines of a converted farm get by DHCP, and in the config of their
// boot, what kubefarm gave them, whether the farm is a config or objects.
func TestConvertedFarm(t *testing.T) {
	for _, format := range []string{"config", "objects"} {
		t.Run(format, func(t *testing.T) {
			farm := converted(t, format)
			for _, card := range []byte{1, 2} {
				convertedOffer(t, farm, pools.MAC{2, 0, 0, 0, 0x28, card})
			}
			stray := farm.Resolve(resolve.Query{MAC: pools.MAC{2, 0, 0, 0, 0x99, 1}, Link: netip.MustParseAddr("10.28.0.2")})
			if stray == nil || stray.Node != "node-020000009901" || stray.Range.String() != "10.28.72.10-10.28.72.250" || stray.Lease.D() != 12*time.Hour {
				t.Errorf("unknown hardware: got %+v", stray)
			}
			plan := farm.Resolve(resolve.Query{MAC: pools.MAC{2, 0, 0, 0, 0x28, 1}, IPXE: true})
			if got := strings.Join(plan.KernelArgs, " "); got != "console=ttyS0,115200" || plan.Cluster != "hall" {
				t.Errorf("kernel arguments %q, cluster %q", got, plan.Cluster)
			}
			if plan.Labels["role"] != "storage" || len(plan.Taints) != 1 || plan.Taints[0].Value != "storage" || plan.KubeletArgs["max-pods"] != "200" {
				t.Errorf("labels %v, taints %v, kubelet %v", plan.Labels, plan.Taints, plan.KubeletArgs)
			}
			convertedConfig(t, plan)
		})
	}
}

// convertedOffer checks the offer to a card of the node.
func convertedOffer(t *testing.T, farm *resolve.Farm, mac pools.MAC) {
	t.Helper()
	s := &dhcp.Responder{Farm: farm, Leases: dhcp.NoLeases{}, Address: netip.MustParseAddr("10.28.0.2")}
	var r dhcp.Request
	r.Parse((&bootprogram.Discover{MAC: mac, Firmware: pools.BIOS}).Packet().ToBytes())
	m, x := s.Reply(&r, time.Now())
	if m == nil {
		t.Fatalf("%s: silence: %+v", mac, x)
	}
	offer, err := dhcpv4.FromBytes(m.Append(nil))
	if err != nil {
		t.Fatal(err)
	}
	if !offer.YourIPAddr.Equal(net.IPv4(10, 28, 36, 1)) || offer.HostName() != "m1c1" || offer.DomainName() != "example.org" ||
		!offer.Router()[0].Equal(net.IPv4(10, 28, 0, 1)) || !offer.DNS()[0].Equal(net.IPv4(10, 28, 0, 1)) || offer.IPAddressLeaseTime(0) < 1<<31*time.Second {
		t.Errorf("%s: got %s", mac, offer.Summary())
	}
	var set []string
	for _, o := range x.Plan.Options {
		set = append(set, o.Name+"="+o.Text)
	}
	if !slices.Contains(set, "ntp-server=10.28.0.3") || !slices.Contains(set, "wpad=http://wpad/") {
		t.Errorf("%s: got options %q", mac, set)
	}
}

// convertedConfig checks what the node gets in its boot.
func convertedConfig(t *testing.T, plan *resolve.Plan) {
	t.Helper()
	c, err := nodeconfig.Maker{}.Make(t.Context(), plan)
	if err != nil {
		t.Fatal(err)
	}
	if c.Hostname != "m1c1" || c.Timezone != "Europe/Prague" || !c.Join || !c.Units["watch.service"].Enable {
		t.Errorf("got %q, %q, join %v, units %v", c.Hostname, c.Timezone, c.Join, slices.Sorted(maps.Keys(c.Units)))
	}
	if !slices.ContainsFunc(c.Mounts, func(m pools.Mount) bool { return m.Path == "/data" && m.Source == "nfs:/data" }) {
		t.Errorf("got mounts %v", c.Mounts)
	}
	fixture.WantText(t, "bond.sh", c.Files["/etc/ltsp/bond.sh"].Content, "bond0.2: {id: 2, link: bond0}", "${MAC_ADDRESS}")
	i := slices.IndexFunc(c.Scripts, func(s pools.NamedScript) bool { return strings.Contains(s.Run, "/etc/ltsp/bond.sh") })
	if i < 0 || c.Scripts[i].Stage != pools.PostInit || !c.Scripts[i].Source {
		t.Errorf("got scripts %+v", c.Scripts)
	}
}
