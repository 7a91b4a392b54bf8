package site

import (
	"context"
	"errors"
	"fmt"
	"os"

	"drover/e2e/buildcache"
)

// ErrUnable says that this host cannot run a site: not root, or not a Debian with
// the programs it takes.
var ErrUnable = errors.New("cannot run a virtual rack here")

// Check tells what is missing on this host; its error is [ErrUnable].
func Check(ctx context.Context) error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("%w: it needs root", ErrUnable)
	}
	if err := buildcache.Able(ctx); err != nil {
		return fmt.Errorf("%w: %w", ErrUnable, err)
	}
	return nil
}
