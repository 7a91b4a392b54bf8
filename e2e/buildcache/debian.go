package buildcache

import (
	"context"
	"io"
	"path/filepath"
	"slices"
	"strings"
)

// systemPackages are what a system of Debian has beyond a base: an init, and what packages
// with a user of their own depend on. Nothing of it is of drover's package.
const systemPackages = ",adduser,systemd-sysv"

// Debian12 returns the root of a minimal Debian 12 that systemd starts. Nobody writes to it.
func Debian12(ctx context.Context, log io.Writer) (root string, err error) {
	return debian12.system(ctx, log)
}

// Debian13 is [Debian12] for Debian 13.
func Debian13(ctx context.Context, log io.Writer) (root string, err error) {
	return debian13.system(ctx, log)
}

// Resolvers is [Debian12] with systemd-resolved and dnsmasq, for one of them at a time, and
// with nft.
func Resolvers(ctx context.Context, log io.Writer) (root string, err error) {
	return systemRoot(ctx, log, "resolvers", debian12.with(systemPackages+",systemd-resolved,dnsmasq,nftables,iproute2"))
}

func (d debian) system(ctx context.Context, log io.Writer) (string, error) {
	return systemRoot(ctx, log, "system"+d.suffix, d.with(systemPackages))
}

// with returns the arguments of mmdebstrap for a base with more packages.
func (d debian) with(packages string) []string {
	args := d.debootstrap()
	for i, arg := range args {
		if strings.HasPrefix(arg, "--include=") {
			args[i] += packages
		}
	}
	return args
}

// checkers are the programs that check what drover ships: its package, its metrics, alerts
// and dashboard. They are unpacked below a root of their own, not installed on this host:
// lintian has more than a hundred dependencies, and Prometheus would start as a service.
const checkers = "lintian,prometheus"

// Checkers returns a root of Debian 12 with the programs that check what drover ships.
// Nobody writes to it.
func Checkers(ctx context.Context, log io.Writer) (root string, err error) {
	args := []string{"--mode=root", "--variant=extract", "--include=?essential", "--include=" + checkers, "--dpkgopt=path-exclude=/usr/share/locale/*"}
	return systemRoot(ctx, log, "checkers", append(append(args, debian12.hooks...), debian12.suite))
}

// systemRoot makes a root with mmdebstrap.
func systemRoot(ctx context.Context, log io.Writer, kind string, args []string) (string, error) {
	log = share(log)
	p := part{kind: kind, key: hashOf(args...), make: func(ctx context.Context, dir string) error {
		return timed(log, kind, func() error {
			return run(command(ctx, "mmdebstrap", append(slices.Clone(args), filepath.Join(dir, "root"))...), io.Discard)
		})
	}}
	dir, err := p.path(ctx, log)
	return filepath.Join(dir, "root"), err
}
