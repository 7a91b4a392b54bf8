package buildcache

import (
	"context"
	"io"
	"path/filepath"
)

// debootstrap is the command that makes the base: the smallest Debian 12 that can install
// packages, with the CA certificates for https downloads. It has a merged /usr, and the
// package that says so, from the start: otherwise Debian 12 installs usrmerge, which
// merges it later, with 47 MB of Perl.
var debootstrap = []string{
	"--mode=root", "--variant=minbase", "--include=ca-certificates,usr-is-merged",
	"--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr", "bookworm",
}

// Base returns a tar of a minimal Debian 12, in place of a base image from a registry.
// Its packages are those of the day on which it was made.
func Base(ctx context.Context, log io.Writer) (tar string, err error) {
	log = share(log)
	dir, err := base(log).path(ctx, log)
	return filepath.Join(dir, baseTar), err
}

const baseTar = "base.tar"

func base(log io.Writer) part {
	return part{kind: "base", key: hashOf(debootstrap...), make: func(ctx context.Context, dir string) error {
		args := append(append([]string{}, debootstrap...), filepath.Join(dir, baseTar))
		return timed(log, "base", func() error { return run(command(ctx, "mmdebstrap", args...), io.Discard) })
	}}
}
