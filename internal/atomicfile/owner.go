package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Own gives the owner and the group of the directory of path to what is at path. Root calls
// it after it has made a file in the directory of a service that runs as another user:
// otherwise the service could not read it. For other users it does nothing.
func Own(path string) error {
	return as(filepath.Dir(path), func(uid, gid int) error { return os.Lchown(path, uid, gid) })
}

// own gives the new file f the owner and the group of the regular file at path, which it
// will replace, or else those of its directory.
func own(f *os.File, path string) error {
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		path = filepath.Dir(path)
	}
	return as(path, f.Chown)
}

// as calls chown with the owner and the group of path, if this is root.
func as(path string, chown func(uid, gid int) error) error {
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok || s.Uid == 0 && s.Gid == 0 {
		return nil
	}
	// In a user namespace an owner can have no number, and some file systems have no owners.
	if err := chown(int(s.Uid), int(s.Gid)); !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EINVAL) {
		return err
	}
	return nil
}
