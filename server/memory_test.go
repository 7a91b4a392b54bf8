package server

import (
	"errors"
	"log/slog"
	"runtime/debug"
	"strings"
	"testing"
	"testing/fstest"

	"drover/e2e/fixture"
)

// TestCgroupMemory: C2 of the attacks asks for a memory limit. It is the smallest of the
// cgroups around the process, of both versions.
func TestCgroupMemory(t *testing.T) {
	const unseen = -1
	tests := []struct {
		name  string
		files map[string]string
		want  int64
	}{
		{"a service of systemd", map[string]string{
			"proc/self/cgroup": "0::/system.slice/drover.service\n",
			"sys/fs/cgroup/system.slice/drover.service/memory.max":  "1073741824\n",
			"sys/fs/cgroup/system.slice/drover.service/memory.high": "536870912\n",
			"sys/fs/cgroup/system.slice/memory.max":                 "max\n",
			"sys/fs/cgroup/system.slice/another.service/memory.max": "1\n",
			"sys/fs/cgroup/memory.pressure":                         "some avg10=0.00\n",
		}, 536870912},
		{"the limit is of the slice", map[string]string{
			"proc/self/cgroup": "0::/system.slice/drover.service\n",
			"sys/fs/cgroup/system.slice/drover.service/memory.max": "max\n",
			"sys/fs/cgroup/system.slice/memory.max":                "2147483648\n",
		}, 2147483648},
		{"a container", map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "268435456\n"}, 268435456},
		{"a container that sees the path on its host", map[string]string{
			"proc/self/cgroup":         "0::/../../kubepods/pod1/c1\n",
			"sys/fs/cgroup/memory.max": "268435456\n",
		}, 268435456},
		{"version 1", map[string]string{
			"proc/self/cgroup": "9:name=systemd:/docker/c1\n4:memory:/docker/c1\n0::/docker/c1\n",
			"sys/fs/cgroup/memory/docker/c1/memory.limit_in_bytes": "134217728\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":           "9223372036854771712\n",
		}, 134217728},
		{"version 1, in the container", map[string]string{
			"proc/self/cgroup":                           "4:cpu,memory:/docker/c1\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "134217728\n",
		}, 134217728},
		{"version 1 without a limit", map[string]string{
			"proc/self/cgroup":                           "4:memory:/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, 0},
		{"none", map[string]string{"proc/self/cgroup": "0::/user.slice\n", "sys/fs/cgroup/user.slice/memory.max": "max\n"}, 0},
		{"the first cgroup of a host", map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cgroup.procs": "1\n"}, 0},
		{"not understood", map[string]string{"proc/self/cgroup": "x\n"}, unseen},
		{"ip netns exec", map[string]string{"proc/self/cgroup": "0::/system.slice/drover.service\n"}, unseen},
		{"another namespace's", map[string]string{"proc/self/cgroup": "0::/system.slice/drover.service\n", "sys/fs/cgroup/cgroup.procs": "1\n"}, unseen},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root := fstest.MapFS{}
			for name, text := range tt.files {
				root[name] = &fstest.MapFile{Data: []byte(text)}
			}
			got, err := cgroupMemory(root)
			if errors.Is(err, errUnseen) {
				got, err = unseen, nil
			}
			if err != nil || got != tt.want {
				t.Errorf("got %d, %v; want %d", got, err, tt.want)
			}
		})
	}
}

func TestNoProc(t *testing.T) {
	if _, err := cgroupMemory(fstest.MapFS{}); err == nil {
		t.Error("no error without /proc")
	}
}

// The operator's own limit stays, and the log says which limit is in force.
func TestLimitMemoryKeepsGOMEMLIMIT(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	t.Setenv("GOMEMLIMIT", "1GiB")
	log := new(fixture.Log)
	LimitMemory(slog.New(slog.NewTextHandler(log, nil)))
	if got := debug.SetMemoryLimit(-1); got != before || !strings.Contains(log.String(), "GOMEMLIMIT") {
		t.Errorf("limit %d, want %d; log: %s", got, before, log)
	}
}
