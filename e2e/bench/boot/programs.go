package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"drover/e2e/parts"
)

// programs are the peers.
type programs struct {
	root           string // where Debian's packages were unpacked
	nginx, dnsmasq string
	nginxVersion   string
	dnsmasqVersion string
}

// debian are the packages; what they need and the host lacks comes with them.
var debian = []string{"nginx", "dnsmasq-base"}

// fetchPrograms downloads and unpacks Debian's packages into the cache, unless
// they are there. Nothing is installed: the packages would start their servers
// on the host, and at each of its boots.
func fetchPrograms(ctx context.Context, cache string, log io.Writer) (*programs, error) {
	for _, name := range []string{"ip", "taskset", "apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(name); err != nil {
			return nil, fmt.Errorf("%w (want Debian with iproute2 and util-linux)", err)
		}
	}
	root := filepath.Join(cache, "bench-boot")
	p := &programs{root: root, nginx: filepath.Join(root, "usr/sbin/nginx"), dnsmasq: filepath.Join(root, "usr/sbin/dnsmasq")}
	if p.versions(ctx) == nil {
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
	nginx, err := p.firstLine(ctx, p.nginx, "-v") // nginx version: nginx/1.22.1
	dnsmasq, derr := p.firstLine(ctx, p.dnsmasq, "--version")
	if err := errors.Join(err, derr); err != nil {
		return err
	}
	_, p.nginxVersion, _ = strings.Cut(nginx, "/")
	if f := strings.Fields(dnsmasq); len(f) > 2 { // Dnsmasq version 2.90  Copyright …
		p.dnsmasqVersion = f[2]
	}
	return nil
}

func (p *programs) firstLine(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), p.env())
	out, err := cmd.CombinedOutput() // nginx tells on standard error
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return line, err
}

// env lets the programs find their libraries, wherever Debian keeps those of
// this architecture.
func (p *programs) env() string {
	dirs, _ := filepath.Glob(filepath.Join(p.root, "usr/lib/*-linux-gnu*")) // the patterns are good ones
	more, _ := filepath.Glob(filepath.Join(p.root, "lib/*-linux-gnu*"))
	return "LD_LIBRARY_PATH=" + strings.Join(append(dirs, more...), ":")
}
