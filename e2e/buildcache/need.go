package buildcache

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

// Able returns an error with the Debian packages that are missing on this host, for
// everything, or for a group: "image" is for building a node image, "demo" for the demos. The list is in
// .ci/need, which the targets of the Makefile run first.
func Able(ctx context.Context, group ...string) error {
	root, err := SourceRoot()
	if err != nil {
		return err
	}
	args := append([]string{"-n"}, group...)
	if out, err := exec.CommandContext(ctx, filepath.Join(root, ".ci", "need"), args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}
