package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/pools"
	"drover/server"
)

func newServeCommand() *cobra.Command {
	var (
		o                   server.Options
		logFormat, logLevel string
	)
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the netboot server",
		Long: `Serve answers DHCP, TFTP and HTTP for the machines of the config, and serves the
REST API, the page and the metrics.

A missing part (an image, a loader, a cluster that is down) is a warning in the
log and a line of /readyz; serve runs without it. Serve reads the config file
again when it changes, or on SIGHUP; a file with a mistake leaves the old config
in force, and a restart begins with the last good one. On SIGTERM running transfers may end; a second SIGTERM ends them.

It needs CAP_NET_BIND_SERVICE and CAP_NET_RAW, and no other privilege.`,
		Example: "  drover serve -c /etc/drover/drover.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// A write to a closed pipe is an error, and not the end of the server.
			signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
			w := server.NewLogWriter(cmd.ErrOrStderr())
			defer w.Close()
			err := runServer(cmd.Context(), o, w, logFormat, logLevel)
			cli.PrintError(w, err) // after all lines of the log, and without waiting for a reader
			if err != nil {
				err = &cli.Error{Code: cli.CodeOf(err)}
			}
			return err
		},
	}
	cli.ConfigFlag(cmd, &o.Config)
	f := cmd.Flags()
	f.StringVar(&o.State, "state", cli.DefaultState, "state directory: nodes of the API, leases, boots, keys")
	f.StringVar(&o.Images, "images", "", "directory of images (default STATE/images)")
	f.StringVar(&o.Loaders, "loaders", "", "directory of boot loaders (default STATE/loaders)")
	f.StringVar(&logFormat, "log-format", "text", "text|json")
	f.StringVar(&logLevel, "log-level", "info", "debug|info|warn|error")
	return cmd
}

// runServer runs the server until ctx ends. It logs to w.
func runServer(ctx context.Context, o server.Options, w *server.LogWriter, logFormat, logLevel string) (err error) {
	if o.Log, err = server.NewLogger(w, logFormat, logLevel); err != nil {
		return &cli.Error{Code: cli.Usage, Err: err}
	}
	server.LimitMemory(o.Log)
	o.Version, o.LinesLost = pools.Version, w.Lost
	for {
		err := serveOnce(ctx, o, w)
		restore, ok := errors.AsType[*server.Restore](err)
		if !ok {
			return err
		}
		o.Restore = restore
	}
}

// serveOnce serves until ctx ends, or a part fails, or a backup is to be restored.
func serveOnce(ctx context.Context, o server.Options, w io.Writer) error {
	s, err := server.New(o)
	if err != nil {
		return cli.PrintMistakes(o.Config, err, w)
	}
	defer s.Close()
	return s.Run(ctx)
}
