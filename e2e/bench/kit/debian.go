package kit

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"drover/e2e/buildcache"
)

// Debian is a directory with unpacked Debian packages and their dependencies. They are not
// installed, because packages start their servers on the host, at once and at each boot.
type Debian string

// Unpack returns the packages in the directory name of the cache. They are
// downloaded unless all of the programs are there.
func Unpack(ctx context.Context, log io.Writer, name string, packages []string, programs ...string) (Debian, error) {
	cache, err := buildcache.CacheDir()
	if err != nil {
		return "", err
	}
	d := Debian(filepath.Join(cache, name))
	if d.has(programs) == nil {
		return d, nil
	}
	fmt.Fprintf(log, "downloading %s into %s\n", strings.Join(packages, ", "), d)
	// Renamed at the end, so that an interrupted download is never taken for a whole one.
	fresh := d + ".new"
	if err := fresh.fill(ctx, packages); err != nil {
		return "", err
	}
	if err := fresh.has(programs); err != nil {
		return "", fmt.Errorf("not in %s: %w", strings.Join(packages, ", "), err)
	}
	if err := os.RemoveAll(string(d)); err != nil {
		return "", err
	}
	return d, os.Rename(string(fresh), string(d))
}

// fill downloads packages and their dependencies, and unpacks them. If two packages have
// the same file, the one of the package whose name sorts last stays.
func (d Debian) fill(ctx context.Context, packages []string) error {
	archives := filepath.Join(string(d), "archives")
	if err := os.RemoveAll(string(d)); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(archives, "partial"), 0o755); err != nil {
		return err
	}
	// One at a time: some of them conflict. Reinstall also fetches packages that are
	// installed on the host.
	for _, name := range packages {
		if out, err := exec.CommandContext(ctx, "apt-get", "install", "--yes", "--no-install-recommends", "--reinstall",
			"--download-only", "-o", "Dir::Cache::archives="+archives, name).CombinedOutput(); err != nil {
			return fmt.Errorf("apt-get: %w: %s\n(is the package list too old? run: apt-get update)", err, out)
		}
	}
	found, err := filepath.Glob(filepath.Join(archives, "*.deb"))
	if err != nil {
		return err
	}
	slices.Sort(found)
	for _, deb := range found {
		if out, err := exec.CommandContext(ctx, "dpkg-deb", "--extract", deb, string(d)).CombinedOutput(); err != nil {
			return fmt.Errorf("dpkg-deb: %s: %w: %s", deb, err, out)
		}
	}
	return os.RemoveAll(archives)
}

func (d Debian) has(programs []string) error {
	for _, name := range programs {
		if _, err := os.Stat(d.Program(name)); err != nil {
			return err
		}
	}
	return nil
}

// Program returns the path of a server.
func (d Debian) Program(name string) string { return filepath.Join(string(d), "usr/sbin", name) }

// Env returns the environment in which the programs find their libraries, in Debian's
// directories for this architecture.
func (d Debian) Env() string {
	dirs, _ := filepath.Glob(filepath.Join(string(d), "usr/lib/*-linux-gnu*")) // the patterns are good ones
	more, _ := filepath.Glob(filepath.Join(string(d), "lib/*-linux-gnu*"))
	return "LD_LIBRARY_PATH=" + strings.Join(append(dirs, more...), ":")
}

// FirstLine returns the first line of a program's output, which usually has its version.
func (d Debian) FirstLine(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, d.Program(name), args...)
	cmd.Env = append(os.Environ(), d.Env())
	out, err := cmd.CombinedOutput() // nginx writes it to standard error
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", name, err, out)
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return line, nil
}
