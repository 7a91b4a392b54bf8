package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"drover/e2e/bench/kit"
	"drover/e2e/bench/stats"
)

// TFTPRow is a row of package e2e/bench/tftp.
type TFTPRow struct {
	Name  string             `json:"name"`
	Rates map[string]float64 `json:"rates"`
	Ratio stats.Ratio        `json:"ratio"`
	Check stats.Check        `json:"check"`
}

// measureTFTP runs the benchmark of TFTP. Its rows show a failure.
func (b *bench) measureTFTP(ctx context.Context, r *Report) error {
	program, out := filepath.Join(b.dir, "bin", "bench-tftp"), filepath.Join(b.dir, "tftp.json")
	if err := kit.Compile(ctx, program, "drover/e2e/bench/tftp"); err != nil {
		return err
	}
	args := []string{"-json", out, "-pin=false"}
	if b.quick {
		args = append(args, "-rounds", "2", "-time", "150ms")
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdout, cmd.Stderr = b.log, b.log
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // it has namespaces to remove
	cmd.WaitDelay = 20 * time.Second
	err := cmd.Run()
	text, rerr := os.ReadFile(out)
	if rerr != nil {
		return errors.Join(err, rerr)
	}
	if err := json.Unmarshal(text, &r.TFTP); err != nil {
		return fmt.Errorf("%s: %w", out, err)
	}
	return nil
}
