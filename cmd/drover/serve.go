package main

import (
	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/cmd/drover/server"
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
in force. On SIGTERM running transfers may end; a second SIGTERM ends them.

It needs CAP_NET_BIND_SERVICE and CAP_NET_RAW, and no other privilege.`,
		Example: "  drover serve -c /etc/drover/drover.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w := server.NewLogWriter(cmd.ErrOrStderr())
			defer w.Close()
			var err error
			if o.Log, err = server.NewLogger(w, logFormat, logLevel); err != nil {
				return &cli.Error{Code: cli.Usage, Err: err}
			}
			o.Version = version()
			s, err := server.New(o)
			if err != nil {
				return cli.PrintMistakes(o.Config, err, cmd.ErrOrStderr())
			}
			defer s.Close()
			return s.Run(cmd.Context())
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
