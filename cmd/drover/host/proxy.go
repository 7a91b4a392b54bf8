package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/cmd/drover/host/proxy"
	"drover/kube/backends"
	"drover/kube/externalhost/bundle"
)

func newProxyCommand() *cobra.Command {
	var cluster, dir string
	var listen []string
	cmd := &cobra.Command{
		Use:   "proxy SERVICE.NAMESPACE:PORT",
		Short: "Relay TCP connections at a port of this host to the pods of a Service",
		Long: `Proxy runs on a host outside a cluster, with the credentials of its bundle. It relays
connections to the pods behind a port of a Service, with a ClusterIP or without, and
follows them: ready pods first, pods that end while none is ready. A connection waits up
to 15 s for a pod, so that none is refused while a Deployment replaces its pods. At
its end it lets connections go on for up to 30 s.

The bundle of a host runs it as a unit for each entry of the host's expose: in the
config.`,
		Example: "  drover host proxy web.default:80\n  drover host proxy db.shop:5432 --cluster tenant-a --listen 127.0.0.1:15432",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			port, err := parsePort(args[0])
			if err != nil {
				return &cli.Error{Code: cli.Usage, Err: err}
			}
			dirs, err := installed(dir, cluster)
			if err == nil && len(dirs) > 1 {
				err = &cli.Error{Code: cli.Usage, Err: fmt.Errorf("this host is in %d clusters: say --cluster", len(dirs))}
			}
			if err != nil {
				return err
			}
			facts, err := readBundle(dirs[0])
			if err != nil {
				return err
			}
			if len(listen) == 0 {
				for _, address := range []string{"127.0.0.1", facts.Address.String()} {
					listen = append(listen, net.JoinHostPort(address, strconv.Itoa(port.Number)))
				}
			}
			log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil)).With("service", args[0])
			return relay(cmd.Context(), backends.Open(facts.Cluster, kubeconfig(dirs[0])), port, listen, log)
		},
	}
	f := cmd.Flags()
	f.StringVar(&cluster, "cluster", "", "cluster of the Service, if this host is in several")
	f.StringVar(&dir, "dir", bundle.Parent, "directory of the installed bundles")
	f.StringArrayVar(&listen, "listen", nil, "address and port to listen at (default the Service's port at 127.0.0.1 and at the host's address)")
	return cmd
}

// parsePort parses SERVICE.NAMESPACE:PORT.
func parsePort(text string) (p backends.Port, err error) {
	name, number, _ := strings.Cut(text, ":")
	p.Service, p.Namespace, _ = strings.Cut(name, ".")
	p.Number, err = strconv.Atoi(number)
	if err != nil || p.Number < 1 || p.Number > 65535 || p.Service == "" || p.Namespace == "" || strings.ContainsAny(name, "/,=! ") {
		return p, fmt.Errorf("%q: want SERVICE.NAMESPACE:PORT, such as web.default:80", text)
	}
	return p, nil
}

// relay runs a proxy until ctx is done.
func relay(ctx context.Context, cluster *backends.Cluster, port backends.Port, listen []string, log *slog.Logger) error {
	var listeners []net.Listener
	for _, at := range listen {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", at)
		if err != nil {
			for _, l := range listeners {
				_ = l.Close()
			}
			return fmt.Errorf("listen at %s: %w (ss -lntp shows the program that has the port)", at, err)
		}
		listeners = append(listeners, l)
	}
	log.Info("listening", "at", strings.Join(listen, ", "))
	p := &proxy.Proxy{Log: log}
	// The pods are followed while connections drain, too.
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { cluster.Follow(following, port, p.Set) })
	err := p.Serve(ctx, listeners...)
	stop()
	running.Wait()
	if errors.Is(err, context.Canceled) {
		return nil // by a signal
	}
	return err
}
