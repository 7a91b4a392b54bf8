package buildcache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// keep is the number of parts of one kind in the cache: the current one, and one more
// for another branch.
const keep = 2

// CacheDir returns the folder of the parts: $DROVER_CACHE, else $XDG_CACHE_HOME/drover,
// else ~/.cache/drover. It need not exist.
func CacheDir() (string, error) {
	if dir := os.Getenv("DROVER_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no place for a cache, set DROVER_CACHE: %w", err)
	}
	return filepath.Join(dir, "drover"), nil
}

// part is a folder in the cache, and the function that makes it.
type part struct {
	kind string // "kubernetes"
	key  string // hash of all inputs, see hashOf
	// make fills an empty folder. It runs alone among all processes that make
	// this kind of part.
	make func(ctx context.Context, dir string) error
}

// pathOf returns the directory of the part that find returns, and makes the part if it is
// not there. what names it in errors.
func pathOf(ctx context.Context, log io.Writer, what string, find func(context.Context, io.Writer) (part, error)) (dir string, err error) {
	log = share(log)
	p, err := find(ctx, log)
	if err != nil {
		return "", fmt.Errorf("%s: %w", what, err)
	}
	return p.path(ctx, log)
}

// path returns the part's folder. It makes the part if there is none.
func (p part) path(ctx context.Context, log io.Writer) (string, error) {
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, p.kind+"-"+p.key)
	if used(dir) {
		return dir, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	unlock, err := lock(ctx, filepath.Join(cache, p.kind+".lock"), func() {
		fmt.Fprintf(log, "%s: another process makes one, waiting\n", p.kind)
	})
	if err != nil {
		return "", fmt.Errorf("%s: %w", p.kind, err)
	}
	defer unlock()
	if used(dir) { // another process made it meanwhile
		return dir, nil
	}
	if err := p.install(ctx, cache, dir); err != nil {
		return "", fmt.Errorf("%s: %w", p.kind, err)
	}
	return dir, prune(cache, p.kind, dir)
}

// install makes the part under a temporary name and then renames it, so that a part is
// always complete. The caller holds the lock.
func (p part) install(ctx context.Context, cache, dir string) error {
	prefix := "." + p.kind + "-"
	leftovers, err := filepath.Glob(filepath.Join(cache, prefix+"*"))
	if err != nil {
		return err
	}
	for _, old := range leftovers { // of a process that was killed
		if err := os.RemoveAll(old); err != nil {
			return err
		}
	}
	temp, err := os.MkdirTemp(cache, prefix)
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	if err := os.Chmod(temp, 0o755); err != nil {
		return err
	}
	if err := p.make(ctx, temp); err != nil {
		return err
	}
	return os.Rename(temp, dir)
}

// used reports whether a part exists, and updates its time, by which prune decides.
func used(dir string) bool {
	now := time.Now()
	return os.Chtimes(dir, now, now) == nil
}

// prune removes all parts of a kind except the newest, which include dir.
func prune(cache, kind, dir string) error {
	found, err := filepath.Glob(filepath.Join(cache, kind+"-*"))
	if err != nil {
		return err
	}
	age := func(path string) time.Time {
		info, err := os.Stat(path)
		if err != nil {
			return time.Time{}
		}
		return info.ModTime()
	}
	found = slices.DeleteFunc(found, func(path string) bool { return path == dir })
	slices.SortFunc(found, func(a, b string) int { return age(b).Compare(age(a)) })
	var errs []error
	for i, path := range found {
		if i >= keep-1 {
			errs = append(errs, os.RemoveAll(path))
		}
	}
	return errors.Join(errs...)
}

// lock takes a file lock, which ends with the process at the latest. If another process
// holds it, lock calls wait once.
func lock(ctx context.Context, path string, wait func()) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o644)
	if err != nil {
		return nil, err
	}
	for try := 0; ; try++ {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if err != syscall.EWOULDBLOCK && err != syscall.EINTR {
			f.Close()
			return nil, fmt.Errorf("lock %q: %w", path, err)
		}
		if try == 0 {
			wait()
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// hashOf returns the hash of a list of inputs; ("ab", "c") and ("a", "bc") differ.
func hashOf(inputs ...string) string {
	h := sha256.New()
	for _, in := range inputs {
		fmt.Fprintf(h, "%d:%s", len(in), in)
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// hashFiles returns a hash of the names and contents of files, and of all files below
// folders. Names are relative to root.
func hashFiles(root string, names ...string) (string, error) {
	h := sha256.New()
	for _, name := range names {
		err := filepath.WalkDir(filepath.Join(root, name), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			rel, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(h, "%d:%s%d:", len(rel), rel, len(content))
			h.Write(content)
			return nil
		})
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// SourceRoot returns the root of drover's source tree, which is the working directory or
// above it.
func SourceRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && slices.Contains(strings.Split(string(content), "\n"), "module drover") {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s: not in drover's source tree, which the parts are made from", start)
		}
	}
}
