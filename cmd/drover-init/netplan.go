package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"drover/node/program"
	"drover/node/rootfs"
)

// netplanGenerators are the paths of netplan's generator: of Debian 13 and Ubuntu 24.04, and
// of the releases of both before them.
var netplanGenerators = []string{"/usr/libexec/netplan/generate", "/usr/lib/netplan/generate", "/lib/netplan/generate"}

// netplanLimit is the time limit of netplan's generator, which writes a few files.
const netplanLimit = 60 * time.Second

// checkNetplan runs netplan's generator over the files in /etc/netplan, and returns its
// error. systemd runs it again. It ignores a failure, and the node would come up with a
// network that is not the operator's, as if all were well.
func checkNetplan(ctx context.Context, root string, say func(format string, args ...any)) error {
	files, _ := filepath.Glob(filepath.Join(root, "etc/netplan/*.yaml")) // the pattern is right
	if len(files) == 0 {
		return nil
	}
	for _, path := range netplanGenerators {
		generator := filepath.Join(root, path)
		if s, err := os.Stat(generator); err != nil || !s.Mode().IsRegular() {
			continue
		}
		args := []string{"--root-dir", root}
		if root == "/" {
			args = nil
		}
		cmd := exec.Command(generator, args...)
		cmd.Dir = "/"
		cmd.Env = []string{"PATH=" + rootfs.SearchPath}
		ctx, cancel := context.WithTimeoutCause(ctx, netplanLimit, fmt.Errorf("not done after %v", netplanLimit))
		defer cancel()
		var said []string
		err := program.Run(ctx, cmd, func(line string) {
			say("netplan: %s", line)
			if line = strings.TrimSpace(line); strings.Trim(line, "^") != "" { // it marks the column
				said = append(said, line)
			}
		})
		if err != nil {
			return fmt.Errorf("netplan: %w: %s", err, strings.Join(said[max(0, len(said)-3):], "; "))
		}
		return nil
	}
	return fmt.Errorf("netplan: there is /etc/netplan/%s, and the image has no netplan (package netplan.io): nothing would set up its network", filepath.Base(files[0]))
}
