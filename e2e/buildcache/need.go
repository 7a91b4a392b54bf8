package buildcache

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

// Able returns an error with the Debian packages that are missing on this host. The list
// is in .ci/need, which the targets of the Makefile run first.
func Able(ctx context.Context) error {
	root, err := SourceRoot()
	if err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, filepath.Join(root, ".ci", "need"), "-n").CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}
