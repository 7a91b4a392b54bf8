// Package script runs the operator's scripts of one stage: [Runner]. [LeaseEnv] and
// [ConfigEnv] return their environment variables.
package script

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"drover/node/nodeconfig"
	"drover/node/program"
	"drover/node/rootfs"
	"drover/pools"
)

// Runner runs the operator's scripts of one stage.
type Runner struct {
	Dir   string        // the running script is a file in it
	Env   []string      // in addition to PATH and HOME
	Limit time.Duration // for each
	Say   func(topic, format string, args ...any)
}

// OfStage returns the scripts of a stage, in the order of their names.
func OfStage(all []pools.NamedScript, stage pools.Stage) []pools.NamedScript {
	var some []pools.NamedScript
	for _, s := range all {
		if s.Stage == stage {
			some = append(some, s)
		}
	}
	slices.SortStableFunc(some, func(a, b pools.NamedScript) int { return strings.Compare(a.Name, b.Name) })
	return some
}

// Run runs one script. Without a first line "#!..." the script runs in /bin/sh, which reads
// it with "." if it is one to source.
func (s *Runner) Run(ctx context.Context, script pools.NamedScript) error {
	if script.Name == "" || strings.ContainsAny(script.Name, "/\x00") || script.Name[0] == '.' {
		return fmt.Errorf("script %q: not a name for a script", script.Name)
	}
	path := filepath.Join(s.Dir, string(script.Stage)+"-"+script.Name)
	if err := nodeconfig.WriteFile(path, []byte(script.Run), 0o700); err != nil {
		return fmt.Errorf("script %q: %w", script.Name, err)
	}
	cmd := exec.Command(path)
	switch {
	case script.Source:
		cmd = exec.Command("/bin/sh", "-c", `. "$1"`, "sh", path)
	case !strings.HasPrefix(script.Run, "#!"):
		cmd = exec.Command("/bin/sh", path)
	}
	cmd.Dir = "/"
	cmd.Env = append([]string{"PATH=" + rootfs.SearchPath, "HOME=/root"}, s.Env...)
	ctx, cancel := context.WithTimeoutCause(ctx, s.Limit, fmt.Errorf("not done after %v", s.Limit))
	defer cancel()
	last := ""
	start := time.Now()
	err := program.Run(ctx, cmd, func(line string) {
		last = line
		s.Say("script", "%s: %s", script.Name, line)
	})
	err = errors.Join(err, nodeconfig.Ignore(os.Remove(path), unix.ENOENT))
	switch {
	case err != nil && last != "":
		return fmt.Errorf("script %q: %w, after it printed: %s", script.Name, err, last)
	case err != nil:
		return fmt.Errorf("script %q: %w", script.Name, err)
	}
	s.Say("script", "%s: done in %.1f s", script.Name, time.Since(start).Seconds())
	return nil
}
