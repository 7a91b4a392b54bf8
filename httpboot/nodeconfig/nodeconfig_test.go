package nodeconfig_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"drover/e2e/fixture"
	"drover/httpboot/nodeconfig"
	"drover/pools"
	"drover/pools/config"
	"drover/pools/resolve"
)

const hash = "$6$salt$0123456789abcdefghij./"

// plan returns the Plan of a node whose tag has these lines of YAML.
func plan(t *testing.T, tag string) *resolve.Plan {
	t.Helper()
	farm, err := config.Parse("farm.yaml", []byte(`
server: {interfaces: [eth1], address: 10.28.0.2}
subnets: [{cidr: 10.28.0.0/16, router: 10.28.0.1, domain: example.org}]
tags:
  all: {labels: {rack: r1}}
  node:
`+tag+`
pools: [{name: web, image: debian-12, tags: [node], nodes: [{name: m1, macs: ["94:57:a5:d3:ec:f2", "94:57:a5:d3:ec:f3"], ip: 10.28.36.174}]}]
`))
	if err != nil {
		t.Fatal(err)
	}
	mac, err := pools.ParseMAC("94:57:a5:d3:ec:f3")
	if err != nil {
		t.Fatal(err)
	}
	return farm.Resolve(resolve.Query{MAC: mac})
}

// contents are the places that references name, by their text.
type contents map[string]string

func (c contents) Read(_ context.Context, r pools.Reference) ([]byte, error) {
	if text, ok := c[r.Place()]; ok {
		return []byte(text), nil
	}
	return nil, errors.New("no " + r.Place())
}

// gateways makes a file and a unit, for the cluster a.
type gateways struct{}

func (gateways) Gateway(_ context.Context, p *resolve.Plan) (map[string]pools.File, map[string]pools.Unit, error) {
	if p.Gateway != "a" {
		return nil, nil, errors.New("it is away")
	}
	return map[string]pools.File{"/etc/drover-host/a/token": {Content: "t", Mode: "0600"}}, map[string]pools.Unit{"flanneld.service": {Enable: true}}, nil
}

// TestGateway: a gateway gets the files and units of its cluster beside those of its tags, and
// no kubelet.
func TestGateway(t *testing.T) {
	p := &resolve.Plan{Node: "gw1", Gateway: "a", Settings: resolve.Settings{Units: map[string]pools.Unit{"own.service": {Enable: true}}, MaskUnits: []string{"x.timer"}}}
	c, err := nodeconfig.Maker{Gateways: gateways{}}.Make(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if c.Join || c.Files["/etc/drover-host/a/token"].Mode != "0600" || !c.Units["flanneld.service"].Enable || !c.Units["own.service"].Enable || !slices.Contains(c.MaskUnits, "kubelet.service") {
		t.Errorf("got %+v", c)
	}
	if len(p.Units) != 1 || len(p.MaskUnits) != 1 {
		t.Errorf("the Plan has changed: %v, %v", p.Units, p.MaskUnits)
	}
	p.Gateway = "b"
	if _, err := (nodeconfig.Maker{Gateways: gateways{}}).Make(t.Context(), p); err == nil || !strings.Contains(err.Error(), `gateway of cluster "b": it is away`) {
		t.Errorf("got %v", err)
	}
}

func configOf(t *testing.T, p *resolve.Plan, refs nodeconfig.References) (pools.NodeConfig, error) {
	t.Helper()
	return nodeconfig.Maker{References: refs}.Make(t.Context(), p)
}

func TestFiles(t *testing.T) {
	p := plan(t, `
    env: {RACK: r1}
    files:
      /etc/motd: {content: "{{.Node}} {{.Address}}/{{.Subnet.CIDR.Bits}} {{.Env.RACK}}\n", mode: "0640", owner: "root:adm"}
      /etc/raw: {content: "{{.Node}}", template: false}
      /etc/bin: {base64: AP8KAA==}
      /etc/tls.key: {fromSecret: {namespace: drover, name: files, key: tls.key}}
      /etc/from: {fromFile: files/from, owner: www-data}
      /etc/rendered: {fromFile: files/from, template: true}
`)
	c, err := configOf(t, p, contents{"Secret drover/files, key tls.key": "\xff\x00key", "file files/from": "{{.Pool}}\n"})
	if err != nil {
		t.Fatal(err)
	}
	delete(c.Files, "/etc/drover/node.env")
	want := map[string]pools.File{
		"/etc/motd":     {Content: "m1 10.28.36.174/16 r1\n", Mode: "0640", Owner: "root:adm"},
		"/etc/raw":      {Content: "{{.Node}}", Mode: "0644"},
		"/etc/bin":      {Base64: "AP8KAA==", Mode: "0644"},
		"/etc/tls.key":  {Base64: "/wBrZXk=", Mode: "0600"},
		"/etc/from":     {Content: "{{.Pool}}\n", Mode: "0644", Owner: "www-data"},
		"/etc/rendered": {Content: "web\n", Mode: "0644"},
	}
	if !reflect.DeepEqual(c.Files, want) {
		t.Errorf("got %+v\nwant %+v", c.Files, want)
	}
}

func TestErrors(t *testing.T) {
	refs := contents{"file run": "echo", "file hash": "opensesame", "file big": strings.Repeat("x", 6<<20), "file bad": "{{.opensesame"}
	for _, tt := range []struct{ name, tag, want string }{
		{"a missing file", "    files: {/etc/x: {fromFile: none}}", "file /etc/x: no file none"},
		{"an unknown label", `    files: {/etc/x: {content: "{{.Labels.none}}"}}`, "file /etc/x: template: /etc/x:1:9"},
		{"no interpreter", "    scripts: {s: {stage: online, fromFile: run}}", `script "s": file run does not name its interpreter`},
		{"a password", "    rootPasswordHash: {fromFile: hash}", "rootPasswordHash: file hash has no hash of crypt(5)"},
		{"too much", "    files: {/a: {fromFile: big}, /b: {fromFile: big}}", "are 12582912 bytes, more than"},
		{"a network", `    network: {ethernets: {eno1: {addresses: ["{{.Labels.none}}"]}}}`, "network.ethernets.eno1.addresses[0]: "},
		{"a template of a reference", "    files: {/etc/x: {fromFile: bad, template: true}}", "file /etc/x: file bad is not a template"},
	} {
		_, err := configOf(t, plan(t, tt.tag), refs)
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "opensesame") {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
	if _, err := configOf(t, plan(t, "    files: {/etc/x: {fromFile: x}}"), nil); err == nil {
		t.Error("without references: got no error")
	}
}

func TestScripts(t *testing.T) {
	c, err := configOf(t, plan(t, `
    scripts:
      late: {stage: online, run: "#!/bin/sh\necho {{quote .Node}}\n"}
      b: {stage: post-init, fromFile: network.sh, source: true}
      a: {stage: post-init, run: "X={{replace \"10.28.\" \"10.29.\" .Address}}", source: true}
      disk: {stage: initrd, run: "#!/bin/sh\n"}
      own: {stage: pre-init, run: "#!/bin/sh\n"}
`), contents{"file network.sh": "echo {{not a template}}\n"})
	if err != nil {
		t.Fatal(err)
	}
	want := []pools.NamedScript{
		{Name: "disk", Stage: pools.Initrd, Run: "#!/bin/sh\n"},
		{Name: "own", Stage: pools.PreInit, Run: "#!/bin/sh\n"},
		{Name: "a", Stage: pools.PostInit, Run: "X=10.29.36.174", Source: true},
		{Name: "b", Stage: pools.PostInit, Run: "echo {{not a template}}\n", Source: true},
		{Name: "late", Stage: pools.Online, Run: "#!/bin/sh\necho 'm1'\n"},
	}
	if !slices.Equal(c.Scripts, want) {
		t.Errorf("got %+v\nwant %+v", c.Scripts, want)
	}
}

// TestNetwork: the operator's network, with the values of this node, as a file of netplan.
// Later tags merge into it.
func TestNetwork(t *testing.T) {
	c, err := configOf(t, plan(t, `
    network:
      ethernets:
        eno1: &card {mtu: 9000, dhcp4: no, optional: true}
        eno1d1: *card
      bonds:
        bond0:
          interfaces: [eno1, eno1d1]
          macaddress: "{{.MAC}}"
          parameters: {mode: 802.3ad, mii-monitor-interval: 100}
          addresses: ["{{.Address}}/{{.Subnet.CIDR.Bits}}"]
          routes: [{to: default, via: "{{.Subnet.Router}}"}]
      vlans:
        bond0.2: {id: 2, link: bond0, addresses: ["{{.Address | replace \"10.28.\" \"10.29.\"}}/16"]}
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	f := c.Files["/etc/netplan/70-drover.yaml"]
	text, ok := strings.CutPrefix(f.Content, "# Written by drover from the config of the node.\n")
	var got map[string]any
	if err := json.Unmarshal([]byte(text), &got); err != nil || !ok || f.Mode != "0600" {
		t.Fatalf("%+v: %v", f, err)
	}
	card := map[string]any{"mtu": "9000", "dhcp4": "no", "optional": "true"}
	want := map[string]any{"network": map[string]any{
		"version": "2", "renderer": "networkd",
		"ethernets": map[string]any{"eno1": card, "eno1d1": card},
		"bonds": map[string]any{"bond0": map[string]any{
			"interfaces": []any{"eno1", "eno1d1"}, "macaddress": "94:57:a5:d3:ec:f3",
			"parameters": map[string]any{"mode": "802.3ad", "mii-monitor-interval": "100"},
			"addresses":  []any{"10.28.36.174/16"}, "routes": []any{map[string]any{"to": "default", "via": "10.28.0.1"}},
		}},
		"vlans": map[string]any{"bond0.2": map[string]any{"id": "2", "link": "bond0", "addresses": []any{"10.29.36.174/16"}}},
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// TestNetplanReads: netplan's own generator accepts the file, where it is installed.
func TestNetplanReads(t *testing.T) {
	generate, err := exec.LookPath("/usr/libexec/netplan/generate")
	if err != nil {
		if generate, err = exec.LookPath("/usr/lib/netplan/generate"); err != nil {
			t.Skipf("SKIPPED, NOT TESTED: netplan.io is not installed: %v", err)
		}
	}
	c, err := configOf(t, plan(t, `
    network:
      ethernets: {eno1: {dhcp4: no, mtu: 9000, optional: true}, boot: {match: {macaddress: "{{.MAC}}"}, dhcp4: yes}}
      bonds: {bond0: {interfaces: [eno1], parameters: {mode: 802.3ad}, addresses: ["{{.Address}}/16"]}}
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	root := fixture.Tree(t, map[string]string{"/etc/netplan/70-drover.yaml": c.Files["/etc/netplan/70-drover.yaml"].Content})
	if out, err := exec.Command(generate, "--root-dir", root).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if found, _ := filepath.Glob(filepath.Join(root, "run/systemd/network/*bond0*")); len(found) == 0 {
		t.Error("netplan wrote nothing for bond0")
	}
}

func TestCron(t *testing.T) {
	c, err := configOf(t, plan(t, `
    cron: ["30 15 * * * root  poweroff -f", '@reboot www-data echo "$HOME" \% \']
    units: {a.service: {enable: true}}
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(c.Units)) {
		if u := c.Units[name]; name != "a.service" {
			kind := filepath.Ext(name)
			all = append(all, kind+" enable="+map[bool]string{true: "yes", false: "no"}[u.Enable]+"\n"+u.Content)
		}
	}
	slices.Sort(all)
	fixture.Golden(t, "testdata/cron.golden", strings.Join(all, "\n"))
	if !c.Units["a.service"].Enable {
		t.Error("the operator's own unit is gone")
	}
}

func TestResolverAndEnvironment(t *testing.T) {
	c, err := configOf(t, plan(t, `
    dns: [10.28.0.53, "fd00:28::53"]
    search: [example.net, example.org]
    env: {RACK: 'r "1" $x', EMPTY: ""}
    files: {/etc/systemd/resolved.conf.d/70-drover.conf: {content: mine}}
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Files["/etc/systemd/resolved.conf.d/70-drover.conf"].Content; got != "mine" {
		t.Errorf("the operator's file: got %q", got)
	}
	fixture.WantText(t, "networkd", c.Files[pools.BootNetwork+".d/resolver.conf"].Content,
		"[Network]\nDNS=10.28.0.53 fd00:28::53\nDomains=example.net example.org\n", "[DHCPv4]\nUseDNS=no\nUseDomains=no\n")
	env := c.Files["/etc/drover/node.env"].Content
	file := filepath.Join(fixture.Tree(t, map[string]string{"env": env}), "env")
	out, err := exec.Command("/bin/sh", "-c", `. "$1"; printf '%s|%s' "$RACK" "${EMPTY-unset}"`, "sh", file).CombinedOutput()
	if err != nil || string(out) != `r "1" $x|` {
		t.Errorf("a shell reads %q (%v) from\n%s", out, err, env)
	}
	if c.Env["RACK"] != `r "1" $x` {
		t.Errorf("scripts get %q", c.Env)
	}
}

func TestAccount(t *testing.T) {
	tag := "    rootPasswordHash: '" + hash + "'\n    hosts: {api.example.org: [10.28.0.9]}\n    maskUnits: [apt-daily.timer]"
	c, err := configOf(t, plan(t, tag), nil)
	if err != nil || c.RootPasswordHash != hash || len(c.Hosts["api.example.org"]) != 1 || len(c.MaskUnits) != 1 {
		t.Errorf("got %+v, %v", c, err)
	}
	c, err = configOf(t, plan(t, "    rootPasswordHash: {fromFile: hash}"), contents{"file hash": hash + "\n"})
	if err != nil || c.RootPasswordHash != hash {
		t.Errorf("by reference: got %q, %v", c.RootPasswordHash, err)
	}
}

// A node has one machine-id, whichever of its network cards it booted with.
func TestMachineID(t *testing.T) {
	c, err := configOf(t, plan(t, "    timezone: UTC"), nil)
	if want := pools.MachineID(pools.MAC{0x94, 0x57, 0xa5, 0xd3, 0xec, 0xf2}); err != nil || c.MachineID != want {
		t.Errorf("got %q, %v, want that of the first MAC, %q", c.MachineID, err, want)
	}
}

// A domain that a tag sets for DHCP is the node's own, too.
func TestDomainOfTag(t *testing.T) {
	c, err := configOf(t, plan(t, "    dhcpOptions: {domain-name: tag.example}"), nil)
	if err != nil || c.Domain != "tag.example" {
		t.Errorf("got %q, %v, want tag.example", c.Domain, err)
	}
}

// TestHostKey: a node has one SSH host key in each boot, whichever card booted, and a
// certificate for its names; another node, and another server, has another key. The
// operator's own stays.
func TestHostKey(t *testing.T) {
	const (
		file   = "/etc/ssh/ssh_host_ed25519_key"
		cert   = file + "-cert.pub"
		sshd   = "/etc/ssh/sshd_config.d/70-drover.conf"
		secret = "the secret of the server, 32 bytes or more"
	)
	made := func(secret, node string, card int, tag string) map[string]pools.File {
		t.Helper()
		p := plan(t, tag)
		p.Node, p.MAC = node, p.MACs[card]
		c, err := nodeconfig.Maker{Secret: []byte(secret)}.Make(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		return c.Files
	}
	one := made(secret, "m1", 0, "    timezone: UTC")
	for path, mode := range map[string]string{file: "0600", file + ".pub": "0644", cert: "0644", sshd: "0644"} {
		if one[path].Mode != mode {
			t.Errorf("%s: got mode %q, want %q", path, one[path].Mode, mode)
		}
	}
	fixture.WantText(t, sshd, one[sshd].Content, "\nHostCertificate "+cert+"\n")
	public, _, _, _, err := ssh.ParseAuthorizedKey([]byte(one[cert].Content))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := public.(*ssh.Certificate).ValidPrincipals, []string{"m1", "m1.example.org", "10.28.36.174"}; !slices.Equal(got, want) {
		t.Errorf("the certificate is for %q, want %q", got, want)
	}
	if again := made(secret, "m1", 1, "    timezone: UTC"); again[file+".pub"] != one[file+".pub"] {
		t.Errorf("the other card: got %q, want %q", again[file+".pub"].Content, one[file+".pub"].Content)
	}
	for _, other := range []map[string]pools.File{made(secret, "m2", 0, "    timezone: UTC"), made("another "+secret, "m1", 0, "    timezone: UTC")} {
		if other[file+".pub"] == one[file+".pub"] {
			t.Errorf("got %q again", other[file+".pub"].Content)
		}
	}
	if got := made(secret, "m1", 0, "    files: {"+file+": {content: mine}}"); len(got) != 1 || got[file].Content != "mine" {
		t.Errorf("the operator's own key: got %v", got)
	}
	if got := made(secret, "m1", 0, "    files: {"+cert+": {content: mine}}"); len(got) != 4 || got[cert].Content != "mine" {
		t.Errorf("the operator's own certificate: got %v", got)
	}
	if c, err := configOf(t, plan(t, "    timezone: UTC"), nil); err != nil || len(c.Files) > 0 {
		t.Errorf("without a secret: got %v, %v", c.Files, err)
	}
}
