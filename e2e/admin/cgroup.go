package admin

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// cgroup is the path of a node's cgroup below the root of each hierarchy. A kubelet ends
// pods below its root that it does not know, so each kubelet of a host needs one of its own.
type cgroup string

// hierarchies returns the mount points of the host's cgroup file systems: of version 1,
// with one hierarchy for each controller, and of version 2.
func hierarchies() (v1, v2 []string, err error) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil, nil, err
	}
	for line := range strings.Lines(string(mounts)) {
		fields := strings.Fields(line)
		if len(fields) < 3 {
			continue
		}
		switch fields[2] {
		case "cgroup":
			v1 = append(v1, fields[1])
		case "cgroup2":
			v2 = append(v2, fields[1])
		}
	}
	if len(v1)+len(v2) == 0 {
		return nil, nil, errors.New("no cgroup file system is mounted")
	}
	return v1, v2, nil
}

// make makes the cgroup in each hierarchy that has controllers. What an earlier run has
// left is removed first.
func (g cgroup) make() error {
	if err := g.remove(); err != nil {
		return err
	}
	v1, v2, err := hierarchies()
	if err != nil {
		return err
	}
	for _, root := range v1 {
		if err := g.makeV1(root); err != nil {
			return err
		}
	}
	if len(v1) > 0 {
		return nil
	}
	for _, root := range v2 {
		if err := g.makeV2(root); err != nil {
			return err
		}
	}
	return nil
}

// makeV1 makes the cgroup in a hierarchy of version 1. A new cpuset has no processors and no
// memory: nothing could run in it.
func (g cgroup) makeV1(root string) error {
	dir := filepath.Join(root, string(g))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(root, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), value, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// makeV2 makes the cgroup in the hierarchy of version 2, with the controllers that its root
// passes on.
func (g cgroup) makeV2(root string) error {
	dir := filepath.Join(root, string(g))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	controllers, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	var enable strings.Builder
	for c := range strings.FieldsSeq(string(controllers)) {
		enable.WriteString("+" + c + " ")
	}
	return os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte(enable.String()), 0o644)
}

// remove removes the cgroup from all hierarchies: runc uses the one of version 2 on hosts
// that have both. The kernel takes a moment to end the processes.
func (g cgroup) remove() error {
	v1, v2, err := hierarchies()
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(limit); ; time.Sleep(50 * time.Millisecond) {
		var errs []error
		for _, root := range slices.Concat(v1, v2) {
			errs = append(errs, removeTree(filepath.Join(root, string(g))))
		}
		if err := errors.Join(errs...); err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

// removeTree removes a cgroup with those below it. One that does not exist is no error.
func removeTree(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if e.IsDir() {
			errs = append(errs, removeTree(filepath.Join(dir, e.Name())))
		}
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		errs = append(errs, fmt.Errorf("cgroup: %w", err))
	}
	return errors.Join(errs...)
}
