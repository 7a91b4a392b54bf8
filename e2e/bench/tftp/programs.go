package main

import (
	"context"
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
	root                                        string // where Debian's packages were unpacked
	tftpd, atftpd, dnsmasq                      string
	tftpdVersion, atftpdVersion, dnsmasqVersion string
}

// debian are the packages; what they need and the host lacks comes with them.
var debian = []string{"tftpd-hpa", "atftpd", "dnsmasq-base"}

// fetchPrograms downloads and unpacks Debian's packages into the cache, unless
// they are there. Nothing is installed: the packages would start their servers
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
	root := filepath.Join(cache, "bench-tftp")
	p := &programs{
		root: root, tftpd: filepath.Join(root, "usr/sbin/in.tftpd"),
		atftpd: filepath.Join(root, "usr/sbin/atftpd"), dnsmasq: filepath.Join(root, "usr/sbin/dnsmasq"),
	}
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
func (p *programs) versions(ctx context.Context) (err error) {
	for _, v := range []struct {
		program string
		args    []string
		to      *string
	}{{p.tftpd, []string{"-V"}, &p.tftpdVersion}, {p.atftpd, []string{"--version"}, &p.atftpdVersion}, {p.dnsmasq, []string{"--version"}, &p.dnsmasqVersion}} {
		cmd := exec.CommandContext(ctx, v.program, v.args...)
		cmd.Env = append(os.Environ(), p.env())
		out, err := cmd.CombinedOutput()
		if err != nil {
			return err
		}
		*v.to, _, _ = strings.Cut(strings.TrimSpace(string(out)), "\n")
	}
	return nil
}

// env lets the programs find their libraries, wherever Debian keeps those of
// this architecture.
func (p *programs) env() string {
	dirs, _ := filepath.Glob(filepath.Join(p.root, "usr/lib/*-linux-gnu*")) // the pattern is a good one
	more, _ := filepath.Glob(filepath.Join(p.root, "lib/*-linux-gnu*"))
	return "LD_LIBRARY_PATH=" + strings.Join(append(dirs, more...), ":")
}
