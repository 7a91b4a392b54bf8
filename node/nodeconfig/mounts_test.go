package nodeconfig

import (
	"os"
	"path/filepath"
	"testing"

	"drover/e2e/fixture"
	"drover/pools"
)

// TestDisks: a disk that is not there costs 10 s, not 90 s and not the whole boot; an optional
// one has a tmpfs in its place.
func TestDisks(t *testing.T) {
	root, _, err := applyTo(t, nil, func(c *pools.NodeConfig) {
		c.Mounts = []pools.Mount{
			{Path: "/var/lib/containerd", Type: "ext4", Source: "LABEL=data", Options: "nofail,noatime"},
			{Path: "/srv/needed", Type: "xfs", Source: "/dev/nvme0n1p1", Options: "x-systemd.device-timeout=20s"},
			{Path: "/srv/100%", Type: "tmpfs"},
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	const units = "/etc/systemd/system/"
	wantFiles(t, root, map[string]string{
		units + `dev-disk-by\x2dlabel-data.device.d/50-drover.conf`:             "# Written by drover-init.\n[Unit]\nJobRunningTimeoutSec=10s\n",
		units + "dev-nvme0n1p1.device.d/50-drover.conf":                         "# Written by drover-init.\n[Unit]\nJobRunningTimeoutSec=20s\n",
		units + "local-fs.target.wants/srv-needed.mount":                        "->" + units + "srv-needed.mount",
		units + "local-fs.target.wants/var-lib-containerd.mount":                "->" + units + "var-lib-containerd.mount",
		units + "local-fs.target.requires/srv-100\\x25.mount":                   "->" + units + "srv-100\\x25.mount",
		units + "local-fs.target.wants/drover-tmpfs-var-lib-containerd.service": "->" + units + "drover-tmpfs-var-lib-containerd.service",
	})
	fixture.WantText(t, "needed", fixture.ReadFile(t, filepath.Join(root, units, "srv-needed.mount")), "Before=local-fs.target\n", "What=/dev/nvme0n1p1\n")
	fixture.WantText(t, "fallback", fixture.ReadFile(t, filepath.Join(root, units, "drover-tmpfs-var-lib-containerd.service")),
		"After=var-lib-containerd.mount\nBefore=local-fs.target\n",
		"ExecStart=/bin/sh -c 'mountpoint -q \"$$0\" || mount -t tmpfs -o mode=0755 drover-tmpfs \"$$0\"' \"/var/lib/containerd\"\n")
	if _, err := os.Stat(filepath.Join(root, units, "drover-tmpfs-srv-needed.service")); err == nil {
		t.Error("a disk that must be there has a tmpfs in its place")
	}
}
