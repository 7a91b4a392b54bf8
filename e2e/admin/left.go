package admin

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Left returns an error that names the processes, mounts and cgroups of the node that are on
// this host. After [Cluster.Close] there are none, and Left is called once.
func (c *Cluster) Left() error {
	var errs []error
	running, err := c.node.processes()
	_ = c.node.hold.Close() // of a namespace
	if err == nil && len(running) > 0 {
		err = fmt.Errorf("processes are left: %q", running)
	}
	errs = append(errs, err)
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, c.cfg.Dir+"/") {
			errs = append(errs, fmt.Errorf("a mount is left: %s", strings.TrimSpace(line)))
		}
	}
	errs = append(errs, err)
	v1, v2, err := hierarchies()
	for _, root := range append(v1, v2...) {
		dir := filepath.Join(root, string(c.node.cgroup))
		if _, err := os.Stat(dir); err == nil {
			errs = append(errs, fmt.Errorf("a cgroup is left: %s", dir))
		}
	}
	return errors.Join(append(errs, err)...)
}
