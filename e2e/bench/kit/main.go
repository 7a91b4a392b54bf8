package kit

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
)

// Main runs a benchmark until it ends or is interrupted, and exits with 1 when it
// failed.
func Main(name string, run func(ctx context.Context, args []string, stdout, stderr io.Writer) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if ctx.Err() != nil { // the errors of an interrupted run say nothing
		err = errors.New("interrupted")
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// Able returns an error if a benchmark cannot run on this host.
func Able() error {
	if os.Geteuid() != 0 {
		return errors.New("needs root, to make network namespaces")
	}
	if runtime.NumCPU() < 2 {
		return errors.New("one processor only: a server and what asks it need one each")
	}
	for _, name := range []string{"ip", "taskset", "apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(name); err != nil {
			return fmt.Errorf("%w (want Debian with iproute2 and util-linux)", err)
		}
	}
	return nil
}

// Save writes a report as JSON to a file, unless the name is empty.
func Save(file string, report any) error {
	if file == "" {
		return nil
	}
	text, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}
