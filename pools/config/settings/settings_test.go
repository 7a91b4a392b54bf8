package settings_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"drover/pools"
	"drover/pools/config/settings"
)

// check returns the mistakes of a tag as lines, and fails the test for one without a remedy.
func check(t *testing.T, tag pools.Tag) string {
	t.Helper()
	var lines []string
	settings.New().Check(tag, func(field string, err error) {
		if hint, ok := errors.AsType[*pools.HintError](err); !ok || hint.Hint == "" {
			t.Errorf("%s: %v has no remedy", field, err)
		}
		lines = append(lines, field+": "+err.Error())
	})
	return strings.Join(lines, "\n")
}

func list[T any](items ...T) pools.List[T] { return pools.List[T]{Items: items} }

func disk(partitions ...pools.Partition) pools.List[pools.Disk] {
	return list(pools.Disk{Name: "data", Partitions: partitions})
}

// TestGood: a tag without settings has no mistake, and neither has one with each of them.
func TestGood(t *testing.T) {
	yes := true
	tag := pools.Tag{
		Timezone: "Europe/Prague", Modules: list("br_netfilter"), Sysctls: map[string]string{"net.ipv4.ip_forward": "1"}, Cron: list("*/5 * * * * root /bin/true"),
		SSHAuthorizedKeys: list("ssh-ed25519 AAAA a comment"), RootPasswordHash: pools.Secret{Text: "$6$salt$" + strings.Repeat("a", 86)}, DebugShell: pools.ShellOnFailure,
		Mounts: list(pools.Mount{Path: "/srv/a", Type: "tmpfs"}), Zram: "50%",
		Disks: list(pools.Disk{Name: "data", Find: pools.FindDisk{Path: "/dev/nvme*", MinSize: "1G", MaxSize: "2G"}, Partitions: []pools.Partition{
			{Label: "swap", Size: "8GiB", Filesystem: pools.Swap}, {Label: "containerd", Mount: pools.Strings{"/var/lib/containerd", "/srv/b"}, Options: "noatime"},
		}}),
		Files: map[string]pools.File{"/etc/motd": {Content: "{{.Node}}", Mode: "0600", Owner: "33:33"}, "/x": {Base64: "AA=="}, "/y": {Reference: pools.Reference{FromFile: "files/y"}, Template: &yes}},
		Units: map[string]pools.Unit{"a@1.service": {Enable: true}}, MaskUnits: list("apt-daily.timer"),
		Scripts: map[string]pools.Script{"10-a": {Stage: pools.Online, Run: "#!/bin/sh\n"}, "b": {Stage: pools.Initrd, Run: "true", Source: true}, "c": {Stage: pools.PreInit, Reference: pools.Reference{FromFile: "c"}}},
		Hosts:   map[string]pools.Strings{"api.example.org": {"10.28.0.9", "fd00::9"}}, Env: map[string]string{"SITE": "a b"}, DNS: list(netip.MustParseAddr("10.28.0.1")), Search: list("example.org"),
		Network: pools.Tree{"version": "2", "ethernets": map[string]any{"a card by its match": map[string]any{"mtu": "9000"}}, "vlans": map[string]any{"v2": map[string]any{"id": "{{.Env.VLAN}}"}}},
	}
	if got := check(t, tag); got != "" {
		t.Error(got)
	}
	if got := check(t, pools.Tag{}); got != "" {
		t.Error(got)
	}
}

// TestMistakes: each is found alone, in its field.
func TestMistakes(t *testing.T) {
	file := func(f pools.File) pools.Tag { return pools.Tag{Files: map[string]pools.File{"/a": f}} }
	script := func(s pools.Script) pools.Tag { return pools.Tag{Scripts: map[string]pools.Script{"a": s}} }
	for want, tag := range map[string]pools.Tag{
		`modules: "a b" is not`:                                             {Modules: list("a b")},
		`timezone: "../../etc/shadow" is not`:                               {Timezone: "../../etc/shadow"},
		`sysctls.ip_forward: "ip_forward" is not`:                           {Sysctls: map[string]string{"ip_forward": "1"}},
		"sysctls.a.b: sysctl a.b has a line break":                          {Sysctls: map[string]string{"a.b": "1\nkernel.x = 2"}},
		"cron[0]: cron: ":                                                   {Cron: list("* * * root x")},
		`debugShell: unknown debugShell "allways" (did you mean "always"?)`: {DebugShell: "allways"},
		"mounts[0]: mount: path \"a\" is not absolute":                      {Mounts: list(pools.Mount{Path: "a", Type: "tmpfs"})},
		"mounts[0]: mount: path \"/\" is not clean":                         {Mounts: list(pools.Mount{Path: "/", Type: "tmpfs"})},
		"mounts[0]: mount /a has no type":                                   {Mounts: list(pools.Mount{Path: "/a"})},
		"mounts[0]: mount /a: \"x y\" has white space":                      {Mounts: list(pools.Mount{Path: "/a", Type: "tmpfs", Options: "x y"})},
		`hosts.a b: host "a b" is not a host name`:                          {Hosts: map[string]pools.Strings{"a b": {"10.0.0.1"}}},
		`hosts.a: host "a" has no address`:                                  {Hosts: map[string]pools.Strings{"a": {}}},
		`hosts.a: host "a": "0.0.0.0" is not`:                               {Hosts: map[string]pools.Strings{"a": {"0.0.0.0"}}},
		"dns[0]: 224.0.0.1 is not":                                          {DNS: list(netip.MustParseAddr("224.0.0.1"))},
		`search[0]: "a b" is not a domain`:                                  {Search: list("a b")},
		`env.A-B: "A-B" is not the name`:                                    {Env: map[string]string{"A-B": ""}},
		"env.DROVER_NODE: variable DROVER_NODE is set":                      {Env: map[string]string{"DROVER_NODE": "x"}},
		"env.BASH_ENV: variable BASH_ENV is set":                            {Env: map[string]string{"BASH_ENV": "x"}},
		"env.A: variable A has a line break":                                {Env: map[string]string{"A": "x\nPATH=/tmp"}},
		"sshAuthorizedKeys[0]: an SSH key has a type and a key":             {SSHAuthorizedKeys: list("ssh-ed25519 AAAA\nssh-rsa BBBB")},
		`sshAuthorizedKeys[0]: "command=x" is not a type`:                   {SSHAuthorizedKeys: list("command=x ssh-ed25519 AAAA")},
		"files.a: file: path \"a\" is not absolute":                         {Files: map[string]pools.File{"a": {}}},
		"files./a/../b: file: path \"/a/../b\" is not clean":                {Files: map[string]pools.File{"/a/../b": {}}},
		`files./a: file /a: mode "0999" is not octal`:                       file(pools.File{Mode: "0999"}),
		`files./a: file /a: mode "17777" is not`:                            file(pools.File{Mode: "17777"}),
		`files./a: file /a: "a b" is not user or user:group`:                file(pools.File{Owner: "a b"}),
		"files./a: file /a: its content is given twice":                     file(pools.File{Base64: "AA==", Reference: pools.Reference{FromFile: "x"}}),
		"files./a: file /a: base64: ":                                       file(pools.File{Base64: "?"}),
		"files./a: file /a: 1048577 bytes":                                  file(pools.File{Content: strings.Repeat("x", 1<<20+1)}),
		"files./a: file /a: template: ":                                     file(pools.File{Content: "{{.Node"}),
		`units.a.b: "a.b" is not the name of a systemd unit`:                {Units: map[string]pools.Unit{"a.b": {Enable: true}}},
		`units.../a.service: "../a.service" is not the name`:                {Units: map[string]pools.Unit{"../a.service": {Enable: true}}},
		"units.a.service: unit a.service does nothing":                      {Units: map[string]pools.Unit{"a.service": {}}},
		"maskUnits[0]: unit a.service is in units and in":                   {Units: map[string]pools.Unit{"a.service": {Enable: true}}, MaskUnits: list("a.service")},
		"maskUnits[0]: unit drover-agent.service joins":                     {MaskUnits: list("drover-agent.service")},
		`scripts.a.stage: script "a": unknown stage "onlin"`:                script(pools.Script{Stage: "onlin", Run: "#!/bin/sh"}),
		`scripts.a: script "a": run does not name its`:                      script(pools.Script{Stage: pools.Online, Run: "echo"}),
		`scripts.a: script "a": it is empty`:                                script(pools.Script{Stage: pools.Online, Source: true}),
		`scripts.a: script "a": it has run and a reference`:                 script(pools.Script{Stage: pools.Online, Run: "#!/bin/sh", Reference: pools.Reference{FromFile: "x"}}),
		`scripts.../a: script "../a": its name has other`:                   {Scripts: map[string]pools.Script{"../a": {Stage: pools.Online, Run: "#!/bin/sh"}}},
	} {
		if got := check(t, tag); !strings.HasPrefix(got, want) || strings.Contains(got, "\n") {
			t.Errorf("got\n%s\nwant the one mistake\n%s", got, want)
		}
	}
}

// TestNetwork: the form of a network is checked, and its details are left to netplan.
func TestNetwork(t *testing.T) {
	network := func(key string, v any) pools.Tag { return pools.Tag{Network: pools.Tree{key: v}} }
	device := func(kind, name, key, value string) pools.Tag {
		return network(kind, map[string]any{name: map[string]any{key: value}})
	}
	for want, tag := range map[string]pools.Tag{
		`network.network: network has the key network again`:    network("network", map[string]any{}),
		`network.ethernet: unknown key "network.ethernet" (did`: network("ethernet", map[string]any{}),
		`network.version: network: version 1 is not 2`:          network("version", "1"),
		`network.bonds: network.bonds: want devices`:            network("bonds", "x"),
		`network.bonds.a: network: device "a" has no settings`:  network("bonds", map[string]any{"a": nil}),
		`network.bonds.0123456789abcdef: network: device "0123`: device("bonds", "0123456789abcdef", "mtu", "9000"),
		`network.bonds.eth0:1: network: device "eth0:1": its`:   device("bonds", "eth0:1", "mtu", "9000"),
		`network.bonds...: network: device "..": its name is`:   device("bonds", "..", "mtu", "9000"),
		`network.bonds.a.mtu: network: device "a": mtu "67"`:    device("bonds", "a", "mtu", "67"),
		`network.vlans.a: network: device "a": id "4095" is`:    device("vlans", "a", "id", "4095"),
		`network: network: template: `:                          device("bonds", "a", "x", "{{.Node"),
	} {
		if got := check(t, tag); !strings.HasPrefix(got, want) || strings.Contains(got, "\n") {
			t.Errorf("got\n%s\nwant the one mistake\n%s", got, want)
		}
	}
}

// TestDisks: a disk hides nothing of the system, and no two partitions are at one place.
func TestDisks(t *testing.T) {
	at := func(paths ...string) pools.Partition { return pools.Partition{Label: "a", Mount: paths} }
	for want, tag := range map[string]pools.Tag{
		`disk "data": it has 0 partitions`:                      {Disks: disk()},
		`partition a: "/etc" is not a place`:                    {Disks: disk(at("/etc"))},
		`partition a: "/usr/local" is not a place`:              {Disks: disk(at("/usr/local"))},
		`partition a: "/var/../etc" is not a place`:             {Disks: disk(at("/var/../etc"))},
		`partition a: "/" is not a place`:                       {Disks: disk(at("/"))},
		`/srv is mounted by disk "data", too`:                   {Disks: disk(at("/srv", "/srv"))},
		`/srv is mounted by mounts, too`:                        {Disks: disk(at("/srv")), Mounts: list(pools.Mount{Path: "/srv", Type: "tmpfs"})},
		`label "a" is there twice`:                              {Disks: disk(pools.Partition{Label: "a", Size: "1G", Filesystem: pools.Swap}, at("/srv"))},
		`partition b has no size`:                               {Disks: disk(pools.Partition{Label: "b", Filesystem: pools.Swap}, at("/srv"))},
		`partition a: a file system has a mount, swap has none`: {Disks: disk(at())},
		`partition a: file system "zfs" is not`:                 {Disks: disk(pools.Partition{Label: "a", Filesystem: "zfs", Mount: pools.Strings{"/srv"}})},
		`find: path "/dev/disk/by-id/x" is not the device`:      {Disks: list(pools.Disk{Name: "a", Find: pools.FindDisk{Path: "/dev/disk/by-id/x"}, Partitions: []pools.Partition{at("/srv")}})},
		`find: minSize 2G is more than maxSize 1G`:              {Disks: list(pools.Disk{Name: "a", Find: pools.FindDisk{MinSize: "2G", MaxSize: "1G"}, Partitions: []pools.Partition{at("/srv")}})},
		`disk "a": the name is there twice`:                     {Disks: list(pools.Disk{Name: "a", Partitions: []pools.Partition{at("/srv")}}, pools.Disk{Name: "a", Partitions: []pools.Partition{{Label: "b", Mount: pools.Strings{"/b"}}}})},
		`zram: "150%" is not a size`:                            {Zram: "150%"},
	} {
		if got := check(t, tag); !strings.Contains(got, want) || strings.Contains(got, "\n") {
			t.Errorf("got\n%s\nwant the one mistake\n%s", got, want)
		}
	}
}

// TestNoSecrets: a mistake in a password does not quote it.
func TestNoSecrets(t *testing.T) {
	for _, s := range []string{"correct horse", "$6$correct horse", "$1$horse"} {
		got := check(t, pools.Tag{RootPasswordHash: pools.Secret{Text: s}})
		if got == "" || strings.Contains(got, "horse") {
			t.Errorf("got %q", got)
		}
	}
}

// TestReference: a file of the server is in the directory of the config or below it.
func TestReference(t *testing.T) {
	for file, good := range map[string]bool{
		"": true, "a": true, "a/b": true, "..a": true, "/etc/shadow": false, "../a": false, "a/../../b": false, "a/../b": false, ".": false, "a/": false, "a\x00": false,
	} {
		if err := settings.CheckReference(pools.Reference{FromFile: file}); (err == nil) != good {
			t.Errorf("%q: %v", file, err)
		}
	}
	secret := pools.SecretRef{Namespace: "drover", Name: "a", Key: "b"}
	for _, tt := range []struct {
		r    pools.Reference
		good bool
	}{
		{pools.Reference{FromSecret: secret}, true},
		{pools.Reference{FromSecret: secret, FromFile: "a"}, false},
		{pools.Reference{FromSecret: pools.SecretRef{Namespace: "drover", Name: "a"}}, false},
	} {
		if err := settings.CheckReference(tt.r); (err == nil) != tt.good {
			t.Errorf("%+v: %v", tt.r, err)
		}
	}
}
