package buildcache

import (
	"context"
	"io"
	"path/filepath"
	"slices"
)

// debian is a release of Debian that a node image is built from.
type debian struct {
	suffix string // of the kinds of its parts
	suite  string
	hooks  []string // further arguments of mmdebstrap
}

// The releases. Both have a merged /usr, and the package that says so, from the start:
// otherwise Debian 12 installs usrmerge, which merges it later, with 47 MB of Perl.
var (
	debian12 = debian{suite: "bookworm", hooks: []string{"--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr"}}
	debian13 = debian{suffix: "13", suite: "trixie"}
)

// debootstrap returns the command that makes the base: the smallest Debian that can
// install packages, with the CA certificates for https downloads.
func (d debian) debootstrap() []string {
	args := append([]string{"--mode=root", "--variant=minbase", "--include=ca-certificates,usr-is-merged"}, d.hooks...)
	return append(args, d.suite)
}

// Base returns a tar of a minimal Debian 12, in place of a base image from a registry.
// Its packages are those of the day on which it was made.
func Base(ctx context.Context, log io.Writer) (tar string, err error) {
	log = share(log)
	dir, err := debian12.base(log).path(ctx, log)
	return filepath.Join(dir, baseTar), err
}

const baseTar = "base.tar"

func (d debian) base(log io.Writer) part {
	args := d.debootstrap()
	return part{kind: "base" + d.suffix, key: hashOf(args...), make: func(ctx context.Context, dir string) error {
		args := append(slices.Clone(args), filepath.Join(dir, baseTar))
		return timed(log, "base", func() error { return run(command(ctx, "mmdebstrap", args...), io.Discard) })
	}}
}
