package main

import (
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/node/nodeconfig"
	"drover/pools"
)

const mountinfo = `22 27 0:21 / /proc rw,relatime shared:12 - proc proc rw
30 27 259:1 / /var/lib/containerd rw,relatime shared:5 - ext4 /dev/nvme0n1p1 rw
31 27 0:40 / /var/lib/kubelet rw,relatime - tmpfs drover-tmpfs rw,mode=755
32 27 259:2 / /srv/a\040b rw - xfs /dev/nvme0n1p2 rw
33 27 259:3 / /hidden rw - ext4 /dev/nvme0n1p3 rw
34 27 0:41 / /hidden rw - tmpfs tmpfs rw
`

func TestCheckMounted(t *testing.T) {
	root := fixture.Tree(t, map[string]string{"/proc/self/mountinfo": mountinfo, "/dev/disk/by-label/there": ""})
	for _, tt := range []struct {
		m    pools.Mount
		want string // of the error; empty: mounted
	}{
		{pools.Mount{Path: "/var/lib/containerd", Type: "ext4", Source: "/dev/nvme0n1p1"}, ""},
		{pools.Mount{Path: "/var/lib/containerd", Type: "auto", Source: "LABEL=x"}, ""},
		{pools.Mount{Path: "/srv/a b", Type: "xfs", Source: "UUID=1"}, ""},
		{pools.Mount{Path: "/var/lib/kubelet", Type: "ext4", Source: "LABEL=gone"}, "mount /var/lib/kubelet: tmpfs is there in place of /dev/disk/by-label/gone: there is no such disk"},
		{pools.Mount{Path: "/var/lib/kubelet", Type: "auto", Source: "LABEL=there"}, "in place of /dev/disk/by-label/there: it was not mounted, systemctl --failed says why"},
		{pools.Mount{Path: "/data", Type: "ext4", Source: "/dev/sdz"}, "mount /data: nothing is there in place of /dev/sdz"},
		{pools.Mount{Path: "/hidden", Type: "ext4", Source: "/dev/sdz"}, "mount /hidden: tmpfs is there"},
	} {
		err := checkMounted(root, tt.m, nodeconfig.Device(tt.m))
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%+v: got %v, want %q", tt.m, err, tt.want)
		}
	}
}
