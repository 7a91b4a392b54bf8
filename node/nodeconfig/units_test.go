package nodeconfig

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/pools"
)

func TestUnits(t *testing.T) {
	const installed = "[Service]\nExecStart=/bin/true\n\n[Install]\nWantedBy=multi-user.target\n"
	for _, tt := range []struct {
		name  string
		image map[string]string
		units map[string]pools.Unit
		want  map[string]string
		warn  string
		err   string
	}{
		{
			name:  "written and enabled",
			units: map[string]pools.Unit{"a.service": {Content: installed, Enable: true}},
			want: map[string]string{
				"/etc/systemd/system/a.service":                         installed,
				"/etc/systemd/system/multi-user.target.wants/a.service": "->/etc/systemd/system/a.service",
			},
		},
		{
			name:  "the image's, enabled",
			image: map[string]string{"/usr/lib/systemd/system/a.service": installed},
			units: map[string]pools.Unit{"a.service": {Enable: true}},
			want:  map[string]string{"/etc/systemd/system/multi-user.target.wants/a.service": "->/usr/lib/systemd/system/a.service"},
		},
		{
			name: "all kinds of links",
			units: map[string]pools.Unit{"a.service": {Enable: true, Content: "[Install]\n# WantedBy=no.target\nWantedBy=no.target\nWantedBy=\n" +
				"WantedBy=x.target y.target\nRequiredBy = z.target\nUpheldBy=u.target\nAlias=b.service \\\n c.service\n[X]\nWantedBy=other.target\n"}},
			want: map[string]string{
				"/etc/systemd/system/x.target.wants/a.service":    "->/etc/systemd/system/a.service",
				"/etc/systemd/system/y.target.wants/a.service":    "->/etc/systemd/system/a.service",
				"/etc/systemd/system/z.target.requires/a.service": "->/etc/systemd/system/a.service",
				"/etc/systemd/system/u.target.upholds/a.service":  "->/etc/systemd/system/a.service",
				"/etc/systemd/system/b.service":                   "->/etc/systemd/system/a.service",
				"/etc/systemd/system/c.service":                   "->/etc/systemd/system/a.service",
			},
		},
		{
			name:  "an instance of a template",
			image: map[string]string{"/usr/lib/systemd/system/serial@.service": "[Install]\nWantedBy=dev-%i.target\n"},
			units: map[string]pools.Unit{"serial@ttyS0.service": {Enable: true}},
			want:  map[string]string{"/etc/systemd/system/dev-ttyS0.target.wants/serial@ttyS0.service": "->/usr/lib/systemd/system/serial@.service"},
		},
		{
			name: "with another, in a circle",
			units: map[string]pools.Unit{
				"a.service": {Enable: true, Content: "[Install]\nAlso=a.socket\n"},
				"a.socket":  {Content: "[Install]\nAlso=a.service\nWantedBy=sockets.target\n"},
			},
			want: map[string]string{"/etc/systemd/system/sockets.target.wants/a.socket": "->/etc/systemd/system/a.socket"},
		},
		{
			name:  "content takes the place of a mask",
			image: map[string]string{"/etc/systemd/system/a.service": "->/dev/null"},
			units: map[string]pools.Unit{"a.service": {Content: installed, Enable: true}},
			want:  map[string]string{"/etc/systemd/system/a.service": installed},
		},
		{
			name:  "masked",
			image: map[string]string{"/etc/systemd/system/a.service": "->/dev/null", "/usr/lib/systemd/system/a.service": installed},
			units: map[string]pools.Unit{"a.service": {Enable: true}},
			err:   `unit "a.service" is masked in the image`,
		},
		{
			name:  "nothing to enable by",
			units: map[string]pools.Unit{"a.service": {Content: "[Service]\n", Enable: true}},
			warn:  `unit "a.service" has no [Install] section`,
		},
		{
			name:  "a link that would leave the directory",
			units: map[string]pools.Unit{"a.service": {Content: "[Install]\nAlias=../../../x.service\n", Enable: true}},
			err:   `unit "a.service": Alias=: "../../../x.service" is not the name`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root, warned, err := applyTo(t, tt.image, func(c *pools.NodeConfig) { c.Units = tt.units })
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("got error %v, want %q", err, tt.err)
			}
			if !strings.Contains(warned, tt.warn) || tt.warn == "" && warned != "" {
				t.Errorf("got warnings %q, want %q", warned, tt.warn)
			}
			wantFiles(t, root, tt.want)
			for _, dir := range []string{"no.target.wants", "other.target.wants"} {
				if _, err := os.Stat(filepath.Join(root, "/etc/systemd/system", dir)); err == nil {
					t.Errorf("%s was made", dir)
				}
			}
		})
	}
}

func TestMounts(t *testing.T) {
	root, _, err := applyTo(t, nil, func(c *pools.NodeConfig) {
		c.Mounts = []pools.Mount{
			{Path: "/var/lib/containerd", Type: "tmpfs", Options: "size=40%"},
			{Path: "/srv/my-data", Type: "nfs4", Source: "10.0.0.1:/data", Options: "ro,nofail"},
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	const units = "/etc/systemd/system/"
	wantFiles(t, root, map[string]string{
		units + "var-lib-containerd.mount": "# Written by drover-init from the node's config.\n[Unit]\nBefore=local-fs.target\n\n" +
			"[Mount]\nWhat=tmpfs\nWhere=/var/lib/containerd\nType=tmpfs\nOptions=size=40%%\n",
		units + "local-fs.target.requires/var-lib-containerd.mount": "->" + units + "var-lib-containerd.mount",
		units + `srv-my\x2ddata.mount`: "# Written by drover-init from the node's config.\n[Unit]\n\n" +
			"[Mount]\nWhat=10.0.0.1:/data\nWhere=/srv/my-data\nType=nfs4\nOptions=ro,nofail\n",
		units + `remote-fs.target.wants/srv-my\x2ddata.mount`: "->" + units + `srv-my\x2ddata.mount`,
	})
	for _, dir := range []string{"/var/lib/containerd", "/srv/my-data"} {
		fixture.WantMode(t, filepath.Join(root, dir), 0o755|os.ModeDir)
	}
}

func TestEscapeUnitPath(t *testing.T) {
	// The values are the output of systemd-escape --path.
	for in, want := range map[string]string{
		"/var/lib/kubelet": "var-lib-kubelet",
		"/srv/a b":         `srv-a\x20b`,
		"/.hidden/.x":      `\x2ehidden-.x`,
		"/a_b:c.d":         "a_b:c.d",
		"/ü":               `\xc3\xbc`,
	} {
		if got := escapeUnitPath(in); got != want {
			t.Errorf("escapeUnitPath(%q): got %q, want %q", in, got, want)
		}
	}
}

func FuzzInstallSection(f *testing.F) {
	f.Add("[Unit]\nx=y\n[Install]\nWantedBy=a.target b.target \\\n c.target\n;x\nAlias=x.service\n")
	f.Fuzz(func(t *testing.T, content string) {
		for key, values := range installSection(content) {
			if len(values) == 0 || slices.Contains(values, "") || strings.ContainsAny(key, "\n") {
				t.Errorf("%q: %q", key, values)
			}
		}
		root := t.TempDir()
		a := &Applier{Root: filepath.Join(root, "root"), Warn: func(string, ...any) {}}
		id := testIdentity(func(c *pools.NodeConfig) {
			c.Units = map[string]pools.Unit{"a@b.service": {Content: "x" + content, Enable: true}}
		})
		_ = a.units(id) // an error is allowed, a file outside is not
		entries, err := os.ReadDir(root)
		if err != nil || len(entries) != 1 {
			t.Errorf("outside of the root: %v (%v)", entries, err)
		}
	})
}

// TestAgentUnit: systemd takes the unit of the agent, and starts an agent again that ended.
func TestAgentUnit(t *testing.T) {
	root, _, err := applyTo(t, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root, "/etc/systemd/system/drover-agent.service")
	unit := fixture.ReadFile(t, path)
	fixture.WantText(t, "unit", unit, "\nRestart=on-failure\nRestartSec=10\nRestartPreventExitStatus=78\nOOMPolicy=continue\n", "\nStartLimitIntervalSec=0\n")
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		fixture.Missing(t, "needs systemd-analyze")
	}
	unit = strings.Replace(unit, AgentProgram, "/bin/true", 1) // it must be there
	if err := os.WriteFile(path, []byte(unit), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(analyze, "verify", "--man=no", path).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("got %v, %s", err, out)
	}
}
