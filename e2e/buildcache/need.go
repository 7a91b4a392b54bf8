package buildcache

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

// Able says which Debian packages are missing on this host. The list is that of
// .ci/need, which every target of the Makefile that makes parts begins with.
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
