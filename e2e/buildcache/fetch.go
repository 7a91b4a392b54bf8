package buildcache

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// FetchDebian downloads packages for an architecture ("amd64", "arm64"), without their
// dependencies, and unpacks them into root. The architecture may differ from this
// host's. FetchDebian uses package lists of its own, from the host's sources.
func FetchDebian(ctx context.Context, root, arch string, packages ...string) error {
	dir, err := os.MkdirTemp("", "drover-apt-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	a := foreignApt{dir: dir, arch: arch}
	if err := a.open(ctx); err != nil {
		return err
	}
	for _, name := range packages {
		if err := a.fetch(ctx, name); err != nil {
			return err
		}
	}
	found, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err != nil {
		return err
	}
	slices.Sort(found)
	for _, deb := range found {
		if _, err := output(command(ctx, "dpkg-deb", "--extract", deb, root)); err != nil {
			return err
		}
	}
	return nil
}

// foreignApt is APT with its own state, for another architecture.
type foreignApt struct{ dir, arch string }

// open makes the state and reads the package lists.
func (a foreignApt) open(ctx context.Context) error {
	for _, sub := range []string{"state/lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(a.dir, sub), 0o755); err != nil {
			return err
		}
	}
	if err := os.WriteFile(a.status(), nil, 0o644); err != nil {
		return err
	}
	_, err := a.run(ctx, "apt-get", "-qq", "update")
	return err
}

func (a foreignApt) status() string { return filepath.Join(a.dir, "state", "status") }

// run runs one of APT's programs, without its sandbox, whose user cannot enter this
// directory.
func (a foreignApt) run(ctx context.Context, name string, args ...string) (string, error) {
	cmd := command(ctx, name, append([]string{
		"-o", "APT::Architecture=" + a.arch, "-o", "APT::Architectures::=" + a.arch,
		"-o", "Dir::State=" + filepath.Join(a.dir, "state"), "-o", "Dir::State::status=" + a.status(),
		"-o", "Dir::Cache=" + filepath.Join(a.dir, "cache"), "-o", "APT::Sandbox::User=root",
	}, args...)...)
	cmd.Dir = a.dir
	return output(cmd)
}

// fetch downloads a package. For a metapackage of the kernel it downloads the kernel.
func (a foreignApt) fetch(ctx context.Context, name string) error {
	if strings.HasPrefix(name, "linux-image-") {
		kernel, err := a.kernel(ctx, name)
		if err != nil {
			return err
		}
		name = kernel
	}
	_, err := a.run(ctx, "apt-get", "-qq", "download", name)
	return err
}

// kernel returns the package of the kernel that another one depends on.
func (a foreignApt) kernel(ctx context.Context, meta string) (string, error) {
	text, err := a.run(ctx, "apt-cache", "depends", "--important", meta)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(text) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "Depends: linux-image-"); ok {
			return "linux-image-" + name, nil
		}
	}
	return "", fmt.Errorf("package %s depends on no kernel: %s", meta, text)
}
