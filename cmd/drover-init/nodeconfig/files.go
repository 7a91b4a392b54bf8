package nodeconfig

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"drover/pools/atomicfile"
)

// checkPath returns an error unless a path is absolute and clean.
func checkPath(path string) error {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path || path == "/" || strings.ContainsRune(path, 0) {
		return fmt.Errorf("%q is not a plain absolute path", path)
	}
	return nil
}

// WriteFile writes a file atomically: a reader sees the old content or the new. It makes
// missing directories. It replaces a symlink at path and does not follow it.
func WriteFile(path string, content []byte, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if s, err := os.Lstat(path); err == nil && s.IsDir() {
		return fmt.Errorf("%s is a directory", path)
	}
	return atomicfile.Create(path, mode, func(f *os.File) error {
		_, err := f.Write(content)
		return err
	})
}

// Symlink makes path a link to target. It replaces a link or file at path.
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

// LendResolvConf writes a resolv.conf for the programs that run before the root's own
// network is up, if the root has none: most often /etc/resolv.conf is a link to a file
// in /run that systemd-resolved will write. The returned function removes everything
// that would be in the way of that.
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
			// A file that a script wrote beside it stays.
			errs = append(errs, Ignore(Ignore(os.Remove(p), unix.ENOTEMPTY), unix.ENOENT))
		}
		return errors.Join(errs...)
	}
	return restore, WriteFile(target, []byte(content), 0o644)
}

// Ignore returns err, or nil if err is what (errors.Is).
func Ignore(err, what error) error {
	if errors.Is(err, what) {
		return nil
	}
	return err
}
