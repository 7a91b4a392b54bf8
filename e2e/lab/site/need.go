package site

import (
	"context"
	"errors"
	"fmt"
	"os"

	"drover/e2e/buildcache"
)

// ErrUnable is the error of a host that cannot run a site: not root, or not a Debian with
// the necessary programs.
var ErrUnable = errors.New("cannot run a virtual rack here")

// Check returns an error with the programs that are missing on this host, for everything or for a
// group of [buildcache.Able]; it is an [ErrUnable].
func Check(ctx context.Context, group ...string) error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("%w: it needs root", ErrUnable)
	}
	if err := buildcache.Able(ctx, group...); err != nil {
		return fmt.Errorf("%w: %w", ErrUnable, err)
	}
	return nil
}
