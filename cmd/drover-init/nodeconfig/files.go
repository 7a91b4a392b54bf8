package nodeconfig

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// checkPath allows absolute paths without detours.
func checkPath(path string) error {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path || path == "/" || strings.ContainsRune(path, 0) {
		return fmt.Errorf("%q is not a plain absolute path", path)
	}
	return nil
}

// WriteFile puts a file in place as a whole: whoever opens path sees the old
// content or the new, with the mode (permission bits as chmod(2) has them).
// Directories on the way are made. A symlink at path is replaced, not followed.
func WriteFile(path string, content []byte, mode uint32) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if s, err := os.Lstat(path); err == nil && s.IsDir() {
		return fmt.Errorf("%s is a directory", path)
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".drover-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, Ignore(os.Remove(tmp.Name()), unix.ENOENT))
		}
	}()
	_, err = tmp.Write(content)
	if err == nil {
		err = unix.Fchmod(int(tmp.Fd()), mode)
	}
	if err := errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

// Symlink makes path a link to target, in place of what link or file is there.
func Symlink(target, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if old, err := os.Readlink(path); err == nil && old == target {
		return nil
	}
	if err := Ignore(os.Remove(path), unix.ENOENT); err != nil {
		return err
	}
	return os.Symlink(target, path)
}

// LendResolvConf gives the programs that run before the root's own network is
// up a resolver, when the root has none: most often /etc/resolv.conf is a link
// to a file in /run that systemd-resolved will write. The returned function
// takes back what is in the way of that.
func LendResolvConf(root, content string) (restore func() error, err error) {
	restore = func() error { return nil }
	path := filepath.Join(root, "/etc/resolv.conf")
	if s, err := os.Stat(path); content == "" || err == nil && s.Size() > 0 {
		return restore, nil
	}
	target, err := os.Readlink(path)
	if err != nil {
		return restore, WriteFile(path, []byte(content), 0o644)
	}
	if !filepath.IsAbs(target) {
		target = filepath.Join("/etc", target)
	}
	target = filepath.Join(root, filepath.Clean(target))
	made := []string{target}
	for d := filepath.Dir(target); len(d) > len(root); d = filepath.Dir(d) {
		if _, err := os.Stat(d); err == nil {
			break
		}
		made = append(made, d)
	}
	restore = func() error {
		var errs []error
		for _, p := range made {
			// A script may have put something beside it: that stays.
			errs = append(errs, Ignore(Ignore(os.Remove(p), unix.ENOTEMPTY), unix.ENOENT))
		}
		return errors.Join(errs...)
	}
	return restore, WriteFile(target, []byte(content), 0o644)
}

// Ignore returns err unless it is what.
func Ignore(err, what error) error {
	if errors.Is(err, what) {
		return nil
	}
	return err
}
