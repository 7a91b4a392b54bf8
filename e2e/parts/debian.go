package parts

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// UnpackDebian downloads packages, with what they depend on, and unpacks them
// into root, which it empties first. Nothing is installed: no service starts.
// Where two packages have the same file, that of the package whose name sorts
// last stays.
func UnpackDebian(ctx context.Context, root string, packages []string) error {
	archives := filepath.Join(root, "archives")
	if err := os.RemoveAll(root); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(archives, "partial"), 0o755); err != nil {
		return err
	}
	// One at a time: some do not want to be installed together. Reinstall
	// fetches what the host has installed as well.
	for _, name := range packages {
		if out, err := exec.CommandContext(ctx, "apt-get", "install", "--yes", "--no-install-recommends", "--reinstall",
			"--download-only", "-o", "Dir::Cache::archives="+archives, name).CombinedOutput(); err != nil {
			return fmt.Errorf("apt-get: %w: %s\n(is the package list too old? run: apt-get update)", err, out)
		}
	}
	found, err := filepath.Glob(filepath.Join(archives, "*.deb"))
	if err != nil {
		return err
	}
	slices.Sort(found)
	for _, deb := range found {
		if out, err := exec.CommandContext(ctx, "dpkg-deb", "--extract", deb, root).CombinedOutput(); err != nil {
			return fmt.Errorf("dpkg-deb: %s: %w: %s", deb, err, out)
		}
	}
	return os.RemoveAll(archives)
}
