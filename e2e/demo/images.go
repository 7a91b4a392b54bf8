package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"drover/e2e/lab/site"
)

// tried is the image of the step [demo.images], which no pool of the farm names.
const tried = "demo"

// images shows the way of an image by the commands of an operator: a first generation, a second one
// in a channel of its own, its promotion, and the way back. No machine boots it.
func (d *demo) images(ctx context.Context, built *site.Built) error {
	root, err := site.TinyRoot(ctx, d.log)
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)
	build := []string{"image", "build", "--images", built.Images, "--init", filepath.Join(built.Root, "bin", "drover-init"), "--exclude", "usr/lib/modules", "--name", tried}
	first, err := d.drover(ctx, append(build, "--promote", "dir:"+root)...)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(root, "release"), []byte("second\n"), 0o644); err != nil {
		return err
	}
	for _, args := range [][]string{
		append(build, "--channel", "canary", "dir:"+root),
		{"image", "promote", tried + ":canary", "--why", "one machine ran it for a day"},
		{"image", "show", tried, "--images", built.Images},
		{"image", "rollback", tried, "--why", "it was only a demo"},
	} {
		if _, err := d.drover(ctx, args...); err != nil {
			return err
		}
	}
	id, err := d.quiet(ctx, "image", "show", tried, "--images", built.Images, "-o", "jsonpath={.id}")
	if err == nil && (len(id) < 12 || !strings.Contains(first, id[:12])) {
		err = fmt.Errorf("after the rollback %s is %q, and not its first generation", tried, id)
	}
	return err
}

// drover runs a command beside the server as a person would type it, and prints what it says.
func (d *demo) drover(ctx context.Context, args ...string) (string, error) {
	d.log.Say("$ drover %s", strings.Join(args, " "))
	out, err := d.quiet(ctx, args...)
	for line := range strings.Lines(out) {
		d.log.Say("  %s", strings.TrimRight(line, "\n"))
	}
	return out, err
}

// quiet runs a command beside the server, and returns what it says.
func (d *demo) quiet(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", d.Name, d.Drover.Binary}, args...)...)
	cmd.Env = append(os.Environ(), "DROVER_API=http://"+d.Drover.API, "DROVER_TOKEN_FILE="+d.Drover.TokenFile())
	var progress strings.Builder
	cmd.Stderr = &progress
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("drover %s %s: %w\n%s", args[0], args[1], err, &progress)
	}
	return strings.TrimSpace(string(out)), err
}
