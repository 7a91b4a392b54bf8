package kubefarm_test

import (
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/e2e/importtest"
	"drover/migrate"
	"drover/migrate/kubefarm"
	"drover/pools"
	"drover/pools/config"
	"drover/pools/resolve"
)

// kubefarmFarm is the farm of an example of kubefarm.
func kubefarmFarm(t *testing.T, files ...string) *resolve.Farm {
	t.Helper()
	for i := range files {
		files[i] = filepath.Join("../testdata", files[i])
	}
	output := filepath.Join(t.TempDir(), "drover.yaml")
	i := migrate.Import{Output: output, Options: migrate.Options{Interfaces: []string{"eth1"}, Image: "debian-12", Cluster: "hall"},
		Read: func(f *migrate.Farm) error { return kubefarm.Read(f, files) }}
	r, err := i.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Write(nil); err != nil {
		t.Fatal(err)
	}
	farm, err := config.Load(output)
	if err != nil {
		t.Fatal(err)
	}
	return farm
}

// TestKubefarmNodes: nodes get what kubefarm gave them.
func TestKubefarmNodes(t *testing.T) {
	farm := kubefarmFarm(t, "kubefarm/values.yaml", "kubefarm/site.yaml")
	mac := func(text string) resolve.Query {
		m, err := pools.ParseMAC(text)
		if err != nil {
			t.Fatal(err)
		}
		return resolve.Query{MAC: m, Firmware: pools.BIOS}
	}
	hall := netip.MustParseAddr("10.40.0.2")
	port := mac("02:00:00:00:0f:0f")
	port.Link, port.CircuitID = hall, "ge-0/0/7.0:staging"
	client := mac("02:00:00:00:0f:03")
	client.Link, client.ClientID = hall, "\x01\x02\x03"
	for _, tt := range []struct {
		name                                    string
		q                                       resolve.Query
		address, args, modules, labels, options string
	}{
		{"a1", mac("02:00:00:00:0a:01"), "10.40.1.1", "quiet console=ttyS1,115200", "br_netfilter nvme", "role=base", "119=hall.example.org"},
		{"a1", mac("02:00:00:00:0a:02"), "10.40.1.1", "quiet console=ttyS1,115200", "br_netfilter nvme", "role=base", "119=hall.example.org"},
		{"a2", mac("02:00:00:00:0a:03"), "10.40.1.2", "quiet console=ttyS1,115200", "br_netfilter nvme", "role=base", "119=hall.example.org"},
		{"a3", client, "10.40.1.3", "quiet console=ttyS1,115200", "br_netfilter nvme", "role=base", "119=hall.example.org"},
		{"b1", mac("02:00:00:00:0b:01"), "10.40.2.1", "isolcpus=2-3", "br_netfilter nvme", "role=app tier=front", "119=hall.example.org 42=10.40.0.3 252=http://wpad/"},
		{"port-7", port, "10.40.2.77", "isolcpus=2-3", "br_netfilter nvme", "role=app tier=front", "119=hall.example.org 42=10.40.0.3 252=http://wpad/"},
	} {
		plan := farm.Resolve(tt.q)
		if plan == nil {
			t.Errorf("%s is not known", tt.name)
			continue
		}
		var labels []string
		for _, key := range slices.Sorted(maps.Keys(plan.Labels)) {
			labels = append(labels, key+"="+plan.Labels[key])
		}
		got := []string{plan.Node, plan.Address.String(), strings.Join(plan.KernelArgs, " "), strings.Join(plan.Modules, " "), strings.Join(labels, " ")}
		want := []string{tt.name, tt.address, tt.args, tt.modules, tt.labels}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		var options []string
		for _, o := range plan.Options {
			options = append(options, fmt.Sprintf("%d=%s", o.Code, o.Text))
		}
		for want := range strings.FieldsSeq(tt.options) {
			if !slices.Contains(options, want) {
				t.Errorf("%s: DHCP options %q lack %s", tt.name, options, want)
			}
		}
		if plan.Subnet.Router.String() != "10.40.0.1" || fmt.Sprint(plan.Subnet.DNS) != "[10.40.0.1 10.40.0.2]" || plan.Cluster != "hall" {
			t.Errorf("%s: router %s, DNS %v, cluster %s", tt.name, plan.Subnet.Router, plan.Subnet.DNS, plan.Cluster)
		}
	}
}

// TestKubefarmHooks: the shell code and the settings of LTSP are those of the nodes.
func TestKubefarmHooks(t *testing.T) {
	farm := kubefarmFarm(t, "kubefarm/values.yaml", "kubefarm/site.yaml")
	m, err := pools.ParseMAC("02:00:00:00:0b:01")
	if err != nil {
		t.Fatal(err)
	}
	plan := farm.Resolve(resolve.Query{MAC: m})
	for name, want := range map[string]string{
		"50-init":          `echo "{{ not a template }}" >/etc/motd`,
		"90-post-init-net": ". /etc/ltsp/bond.sh",
	} {
		s := plan.Scripts[name]
		text, err := pools.Render(name, s.Run, plan)
		if err != nil || !s.Source || s.Stage != pools.PostInit {
			t.Errorf("%s: stage %q, source %v, %v", name, s.Stage, s.Source, err)
		}
		fixture.WantText(t, name, text, want)
	}
	if len(plan.Cron) != 1 || len(plan.Hosts["nfs"]) != 1 || len(plan.MaskUnits) != 2 || plan.Env["MY_OWN"] != "1" || plan.DebugShell != pools.ShellOnFailure || plan.RootPasswordHash.Text == "" {
		t.Errorf("cron %q, hosts %v, masks %v, env %v, shell %q", plan.Cron, plan.Hosts, plan.MaskUnits, plan.Env, plan.DebugShell)
	}
	if plan.Files["/etc/ltsp/bond.sh"].Content == "" || len(plan.Taints) != 1 || plan.KubeletArgs["max-pods"] != "200" || plan.KubeletArgs["cgroup-driver"] != "systemd" {
		t.Errorf("files %v, taints %v, kubelet %v", plan.Files, plan.Taints, plan.KubeletArgs)
	}
	if _, there := plan.Units["watch.service"]; there {
		t.Error("null in a later file removes a key")
	}
}

// TestKubefarmTags: a setting of a later tag takes the place of an earlier one, as the last
// assignment of a shell variable does there.
func TestKubefarmTags(t *testing.T) {
	farm := kubefarmFarm(t, "kubefarm-tags/values.yaml")
	for _, tt := range []struct{ mac, node, args, dns, mounts, shell, scripts string }{
		{"02:00:00:42:00:01", "a1", "console=ttyS1", "[10.42.0.54]", "/var/lib/kubelet size=4g", "never", "05-initrd-bottom initrd, 05-service online, 90-post-service-masq online"},
		{"02:00:00:42:00:02", "b1", "console=ttyS0", "[10.42.0.53]", "/var/lib/kubelet size=4g", "on-failure", "05-initrd-bottom initrd, 05-service online, 90-post-service-masq online"},
		{"02:00:00:42:00:03", "node-020000420003", "console=ttyS1", "[10.42.0.54]", "/var/lib/kubelet x-systemd.wanted-by=kubelet.service", "never", "05-initrd-bottom initrd, 05-service online"},
	} {
		m, err := pools.ParseMAC(tt.mac)
		if err != nil {
			t.Fatal(err)
		}
		plan := farm.Resolve(resolve.Query{MAC: m, Link: netip.MustParseAddr("10.42.0.2")})
		if plan == nil {
			t.Errorf("%s is not known", tt.node)
			continue
		}
		var mounts, scripts []string
		for _, m := range plan.Mounts {
			mounts = append(mounts, m.Path+" "+m.Options)
		}
		for _, name := range slices.Sorted(maps.Keys(plan.Scripts)) {
			scripts = append(scripts, name+" "+string(plan.Scripts[name].Stage))
		}
		got := []string{plan.Node, strings.Join(plan.KernelArgs, " "), fmt.Sprint(plan.DNS), strings.Join(mounts, ", "), string(plan.DebugShell), strings.Join(scripts, ", ")}
		want := []string{tt.node, tt.args, tt.dns, tt.mounts, tt.shell, tt.scripts}
		if !slices.Equal(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}

// TestKubefarmPassword: unknown hardware gets no password of root, and the nodes that the values
// name keep it.
func TestKubefarmPassword(t *testing.T) {
	const head = "ltsp: {config: {rootPasswd: $6$salt$notTheHashOfAnything}}\nnodePools:\n  - tags: [red]\n    range: "
	const nodes = "    nodes: [{name: m1, mac: \"02:00:00:28:00:01\", ip: 10.28.0.11}]\n"
	for _, tt := range []struct {
		values      string
		own, common bool // the hash is in a tag of its own, in that of all
		restricted  bool
	}{
		{head + "10.28.0.0,static,255.255.0.0\n" + nodes, false, true, false},
		{head + "10.28.0.100,10.28.0.150,255.255.0.0\n" + nodes, true, false, true},
		{head + "10.28.0.100,10.28.0.150,255.255.0.0\n", true, false, true},
		{head + "10.28.0.100,10.28.0.150,255.255.0.0\n    extraOpts: [{dhcp-ignore: \"tag:!known\"}]\n" + nodes, false, true, false},
	} {
		r, c := importtest.Text(t, kubefarm.Read, tt.values) // config.Parse has found no mistake
		if (c.Tags["root-password"].RootPasswordHash.Text != "") != tt.own || (c.Tags["all"].RootPasswordHash.Text != "") != tt.common || r.Restricted != tt.restricted || r.Partial {
			t.Errorf("%s\ntags %+v\n%s", tt.values, c.Tags, importtest.Report(r))
		}
		for _, p := range c.Pools {
			if got := slices.Contains(p.Tags, "root-password"); got != (tt.own && !p.CatchAll) || !slices.Contains(p.Tags, "red") || p.SecretsForUnknown {
				t.Errorf("pool %s has tags %v", p.Name, p.Tags)
			}
		}
		if tt.restricted {
			fixture.WantText(t, "the report", importtest.Report(r), "input:1: restricted: ltsp.config.rootPasswd: ", "write secretsForUnknown: true and tag root-password",
				"input:1: taken: ltsp.config.rootPasswd: tags.root-password.rootPasswordHash;")
		}
	}
}

// TestHostile: damage opens no range, and gives no password to more machines.
func TestHostile(t *testing.T) {
	importtest.Refused(t, kubefarm.Read)
	importtest.Damage(t, kubefarm.Read, "nodePools: [{tags: [red], range: \"10.28.0.100,10.28.0.150,255.255.0.0\", extraOpts: [{dhcp-ignore: \"tag:!known\"}], nodes: [{name: m1, mac: \"02:00:00:28:00:01\", ip: 10.28.0.11}]}]\n")
	importtest.Damage(t, kubefarm.Read, `ltsp: {config: {timezone: UTC, sysctls: {a.b: 1}, modules: [x], sections: {init: "true"}, options: {MY: "1"}}}
tags: [{name: red, kernelArgs: x}]
nodePools: [{tags: [red], range: "10.28.0.0,static,255.255.0.0", nodes: [{name: m1, mac: "02:00:00:28:00:01", ip: 10.28.0.11}]}]
`)
}
