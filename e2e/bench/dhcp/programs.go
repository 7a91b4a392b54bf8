package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"drover/e2e/parts"
)

// programs are what is measured and what measures.
type programs struct {
	root                              string // where Debian's packages were unpacked
	kea, keaLFC, perfdhcp, dnsmasq    string
	drover                            string
	keaVersion, dnsmasqVersion, built string
}

// debian are the packages; what they need and the host lacks comes with them.
var debian = []string{"kea-dhcp4-server", "kea-admin", "kea-common", "dnsmasq-base"}

// fetchPrograms downloads and unpacks Debian's packages into the cache, unless
// they are there. Nothing is installed: the packages would start their services
// on the host, and at each of its boots.
func fetchPrograms(ctx context.Context, log io.Writer) (*programs, error) {
	for _, name := range []string{"ip", "taskset", "apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(name); err != nil {
			return nil, fmt.Errorf("%w (want Debian with iproute2 and util-linux)", err)
		}
	}
	cache, err := parts.CacheDir()
	if err != nil {
		return nil, err
	}
	root := filepath.Join(cache, "bench-dhcp")
	p := &programs{
		root: root,
		kea:  filepath.Join(root, "usr/sbin/kea-dhcp4"), keaLFC: filepath.Join(root, "usr/sbin/kea-lfc"),
		perfdhcp: filepath.Join(root, "usr/sbin/perfdhcp"), dnsmasq: filepath.Join(root, "usr/sbin/dnsmasq"),
	}
	if err := p.versions(ctx); err == nil {
		return p, nil
	}
	fmt.Fprintf(log, "downloading %s into %s\n", strings.Join(debian, ", "), root)
	if err := parts.UnpackDebian(ctx, root, debian); err != nil {
		return nil, err
	}
	return p, p.versions(ctx)
}

// versions asks the programs for their versions.
func (p *programs) versions(ctx context.Context) error {
	for _, name := range []string{p.keaLFC, p.perfdhcp} {
		if _, err := os.Stat(name); err != nil {
			return err
		}
	}
	var err, derr error
	p.keaVersion, err = p.firstLine(ctx, p.kea, "-v")
	p.dnsmasqVersion, derr = p.firstLine(ctx, p.dnsmasq, "--version")
	if f := strings.Fields(p.dnsmasqVersion); len(f) > 2 { // Dnsmasq version 2.90  Copyright …
		p.dnsmasqVersion = f[2]
	}
	return errors.Join(err, derr)
}

func (p *programs) firstLine(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), p.env())
	out, err := cmd.Output()
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return line, err
}

// env lets the programs find their libraries, wherever Debian keeps those of
// this architecture.
func (p *programs) env() string {
	dirs, _ := filepath.Glob(filepath.Join(p.root, "usr/lib/*-linux-gnu*")) // the pattern is a good one
	return "LD_LIBRARY_PATH=" + strings.Join(dirs, ":")
}

// build builds drover from the source tree that the working directory is in.
func (p *programs) build(ctx context.Context, dir string) error {
	p.drover = filepath.Join(dir, "bin", "drover") // DIR/drover is for its store
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", p.drover, "drover/cmd/drover")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build drover: %w\n%s", err, out)
	}
	p.built = "built from this source"
	if rev, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty").Output(); err == nil {
		p.built = strings.TrimSpace(string(rev))
	}
	return nil
}

// use takes a program that is there.
func (p *programs) use(drover string) error {
	path, err := filepath.Abs(drover)
	if err != nil {
		return err
	}
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		return fmt.Errorf("-drover %q: %w", drover, errors.Join(err, fs.ErrNotExist))
	}
	p.drover, p.built = path, drover
	return nil
}
