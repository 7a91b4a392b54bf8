package config_test

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"drover/pools"
)

// TestConfigIsNoFile: whatever is in the place of the config, the old one stays in force,
// a reload ends, and changes of nodes go on. Low finding: a FIFO stopped them for good,
// /dev/zero and 60 MB of YAML took all memory.
func TestConfigIsNoFile(t *testing.T) {
	live, path, data := newLive(t, &memory{nodes: map[string]pools.PoolNode{}})
	for name, tt := range map[string]struct {
		put func() error
		err string
	}{
		"FIFO":        {func() error { return syscall.Mkfifo(path, 0o600) }, "not a regular file"},
		"device":      {func() error { return os.Symlink("/dev/zero", path) }, "not a regular file"},
		"directory":   {func() error { return os.Mkdir(path, 0o700) }, "not a regular file"},
		"large":       {func() error { return os.WriteFile(path, bytes.Repeat([]byte("# 4 MiB\n"), 1<<19+1), 0o600) }, "more than 4194304 bytes"},
		"many values": {func() error { return os.WriteFile(path, bytes.Repeat([]byte("a,"), 1<<20), 0o600) }, "more than 524288"},
		"gone":        {func() error { return nil }, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := errors.Join(os.RemoveAll(path), tt.put()); err != nil {
				t.Fatal(err)
			}
			if err := live.Reload(); err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("got %v, want %q", err, tt.err)
			}
			added := pools.PoolNode{Pool: "compute", Node: pools.Node{Name: "x", MACs: []pools.MAC{mac(t, "52:54:00:77:01:01")}, IP: live.Farm().Address().Next()}}
			if err := errors.Join(live.AddNode(added), live.RemoveNode("x")); err != nil || len(live.Farm().Nodes()) != 3 {
				t.Errorf("nodes cannot be changed: %v", err)
			}
		})
	}
	if err := errors.Join(os.RemoveAll(path), os.WriteFile(path, data, 0o600), live.Reload()); err != nil {
		t.Errorf("the good file is back: %v", err)
	}
}
