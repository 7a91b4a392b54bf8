package rootfs

import (
	"os"
	"path/filepath"
	"testing"

	"drover/e2e/fixture"
)

// TestLimitTmpfs: parts of the RAM become parts of what is left, and nothing else changes.
func TestLimitTmpfs(t *testing.T) {
	unit := func(kind, options string) string {
		return "[Mount]\nWhat=x\nWhere=/x\nType=" + kind + "\nOptions=" + options + "\n"
	}
	root := fixture.Tree(t, map[string]string{
		"usr/lib/systemd/system/var-lib-containerd.mount": unit("tmpfs", "mode=0711,size=60%%"),
		"usr/lib/systemd/system/var-lib-kubelet.mount":    unit("tmpfs", "size=50%,nodev"),
		"usr/lib/systemd/system/tmp.mount":                unit("tmpfs", "size=64M"),
		"usr/lib/systemd/system/data.mount":               unit("ext4", "size=50%"),
		"usr/lib/systemd/system/disk.mount":               unit("tmpfs", "size=50%"),
		"etc/systemd/system/disk.mount":                   unit("ext4", "noatime"),
		"etc/systemd/system/gone.mount":                   "->/no/such/unit",
	})
	if err := LimitTmpfs(root, Memory{Total: 4 << 30, Available: 1_000_000_000}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"var-lib-containerd": "mode=0711,size=600000000",
		"var-lib-kubelet":    "size=500000000,nodev",
		"tmp":                "", "data": "", "disk": "", "gone": "",
	} {
		file := filepath.Join(root, "etc/systemd/system", name+".mount.d", "50-drover-size.conf")
		b, err := os.ReadFile(file)
		if (err != nil) != (want == "") || want != "" && string(b) != "# Written by drover-init: a part of the RAM beside the image.\n[Mount]\nOptions="+want+"\n" {
			t.Errorf("%s: got %q, %v, want %q", name, b, err, want)
		}
	}
}
