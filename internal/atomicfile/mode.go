package atomicfile

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// CheckDirectory returns an error, with the remedy, if others can write to a directory: they could put
// files of their own there. A volume of a pod has a mode that the pod cannot change, and counts
// as its own. A directory that does not exist is no error.
func CheckDirectory(path string) error {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o022 == 0 || isVolume(info) {
		return nil
	}
	return fmt.Errorf("%s: others can write to it (mode %s): chmod go-w %s", path, info.Mode(), path)
}

// isVolume reports whether this is a volume of a pod that is not root's: root owns it, and the
// kubelet has given it the pod's group (fsGroup).
func isVolume(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && os.Geteuid() != 0 && s.Uid == 0 && int(s.Gid) == os.Getegid() && info.Mode()&fs.ModeSetgid != 0
}
