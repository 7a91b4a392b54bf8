package server

import (
	"errors"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// LimitMemory makes the garbage collector keep to the memory limit of the cgroup of this
// process, unless GOMEMLIMIT is set: Go lets its heap grow to twice of what is in use, and
// the kernel ends a process that exceeds the limit. A tenth is left for what is not heap.
func LimitMemory(log *slog.Logger) {
	if os.Getenv("GOMEMLIMIT") != "" {
		log.Info("memory limit from GOMEMLIMIT", "bytes", debug.SetMemoryLimit(-1))
		return
	}
	limit, err := cgroupMemory(os.DirFS("/"))
	switch {
	case errors.Is(err, errUnseen):
		log.Warn("cannot see the memory limit of the cgroup: set GOMEMLIMIT if there is one", "err", err)
	case err != nil:
		log.Warn("cannot read the memory limit of the cgroup; set GOMEMLIMIT", "err", err)
	case limit == 0:
		log.Info("no memory limit: the cgroup has none, and GOMEMLIMIT is not set")
	default:
		limit -= limit / 10
		debug.SetMemoryLimit(limit)
		log.Info("memory limit from the cgroup", "bytes", limit)
	}
}

// errUnseen is the error when the files of the process' cgroup are not visible.
var errUnseen = errors.New("/sys/fs/cgroup is not mounted here, as in ip netns exec, or is that of another namespace")

// cgroupMemory returns the smallest memory limit of the cgroup of this process and of
// those around it, in bytes; 0 if there is none. root is the root of the file system. The error is
// errUnseen if it has no file of the cgroup.
func cgroupMemory(root fs.FS) (int64, error) {
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0, err
	}
	lowest, seen := int64(math.MaxInt64), false
	for line := range strings.Lines(string(text)) {
		// hierarchy:controllers:path; version 2 has the hierarchy 0 and no controllers
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		dir, files := "sys/fs/cgroup", []string{"memory.max", "memory.high"}
		switch {
		case fields[0] == "0" && fields[1] == "":
		case strings.Contains(","+fields[1]+",", ",memory,"):
			dir, files = "sys/fs/cgroup/memory", []string{"memory.limit_in_bytes"}
		default:
			continue
		}
		visible, err := lowestLimit(root, dir, fields[2], files, &lowest)
		if err != nil {
			return 0, err
		}
		seen = seen || visible
	}
	if !seen {
		return 0, errUnseen
	}
	if lowest > math.MaxInt64/2 { // version 1 says 2^63 less one page for none
		return 0, nil
	}
	return lowest, nil
}

// lowestLimit lowers lowest to the limits in files of a cgroup and of those around it, up
// to dir. In a container the path may be that on the host: then only dir exists. seen is false if
// no limit was read, and the cgroup itself, which has none if it is the first, is not there.
func lowestLimit(root fs.FS, dir, group string, files []string, lowest *int64) (seen bool, err error) {
	_, err = fs.Stat(root, path.Join(dir, path.Clean("/"+group), "cgroup.procs"))
	seen = err == nil
	for group = path.Clean("/" + group); ; group = path.Dir(group) {
		for _, file := range files {
			text, err := fs.ReadFile(root, path.Join(dir, group, file))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return seen, err
			}
			seen = true
			if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil { // else "max"
				*lowest = min(*lowest, n)
			}
		}
		if group == "/" {
			return seen, nil
		}
	}
}
