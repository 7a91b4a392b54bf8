package buildcache

import (
	"context"
	"io"
	"path/filepath"
)

// debootstrap is how the base is made: the smallest Debian 12 that can install
// packages, with the CA certificates that an https download needs. It is born
// with a merged /usr and the package that says so: otherwise Debian 12 pulls in
// usrmerge, which merges it later, and 47 MB of Perl to do so.
var debootstrap = []string{
	"--mode=root", "--variant=minbase", "--include=ca-certificates,usr-is-merged",
	"--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr", "bookworm",
}

// Base returns a tar of a minimal Debian 12, which takes the place of the base
// image that a registry would have. Its packages are those of the day it was
// made.
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
