package kit

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// FindDrover returns the program to measure and its origin: the given one, or else one that
// it builds in dir from the source tree around the working directory.
func FindDrover(ctx context.Context, dir, given string) (program, from string, err error) {
	if given != "" {
		program, err := exec.LookPath(given)
		if err != nil {
			return "", "", fmt.Errorf("-drover: %w", err)
		}
		program, err = filepath.Abs(program)
		return program, given, err
	}
	from = "built from this source"
	if rev, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty").Output(); err == nil {
		from = strings.TrimSpace(string(rev))
	}
	program = filepath.Join(dir, "bin", "drover")
	return program, from, Compile(ctx, program, "drover/cmd/drover")
}

// Compile builds a program of this module.
func Compile(ctx context.Context, out, pkg string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", out, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, text)
	}
	return nil
}
