package nodeconfig

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"drover/internal/atomicfile"
	"drover/pools"
)

// checkPath returns an error unless a path is absolute and clean.
func checkPath(path string) error {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path || path == "/" || strings.ContainsRune(path, 0) {
		return fmt.Errorf("%q is not a plain absolute path", path)
	}
	return nil
}

// WriteFile writes a file of root atomically: a reader sees the old content or the new. It
// makes missing directories. It replaces a symlink at path and does not follow it.
func WriteFile(path string, content []byte, mode os.FileMode) error {
	return writeFile(path, content, mode, owner{})
}

func writeFile(path string, content []byte, mode os.FileMode, own owner) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if s, err := os.Lstat(path); err == nil && s.IsDir() {
		return fmt.Errorf("%s is a directory", path)
	}
	return atomicfile.Create(path, mode, func(f *os.File) error {
		// In the directory of a user the file would be that user's. Only root gives files away.
		if os.Geteuid() == 0 {
			if err := f.Chown(own.user, own.group); err != nil {
				return err
			}
		}
		_, err := f.Write(content)
		return err
	})
}

// files writes the files of the operator.
func (a *Applier) files(id Identity) error {
	var errs []error
	for _, path := range slices.Sorted(maps.Keys(id.Files)) {
		if err := a.file(path, id.Files[path]); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (a *Applier) file(path string, f pools.File) error {
	if err := checkPath(path); err != nil {
		return err
	}
	mode := uint64(0o644)
	if f.Mode != "" {
		var err error
		if mode, err = strconv.ParseUint(f.Mode, 8, 12); err != nil {
			return fmt.Errorf("%s: mode %q is not octal, 0 to 7777", path, f.Mode)
		}
	}
	content, err := f.Bytes()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	var own owner
	if f.Owner != "" {
		if own, err = a.owner(f.Owner); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return writeFile(a.path(path), content, fileMode(mode), own)
}

// fileMode returns the mode whose bits chmod(2) has as mode.
func fileMode(mode uint64) os.FileMode {
	m := os.FileMode(mode).Perm()
	for bit, special := range map[uint64]os.FileMode{0o4000: os.ModeSetuid, 0o2000: os.ModeSetgid, 0o1000: os.ModeSticky} {
		if mode&bit != 0 {
			m |= special
		}
	}
	return m
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
			if b, err := os.ReadFile(p); err == nil && string(b) != content {
				continue // a script or the operator has written its own
			}
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
