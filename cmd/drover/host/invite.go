package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/cmd/drover/host/invite"
	"drover/kube/externalhost/bundle"
)

// invitePort is the port of a link, unless --listen says another.
const invitePort = "8445" // 8444 is often that of server.https

func newInviteCommand() *cobra.Command {
	var server files
	var cluster, listen string
	var programs []string
	cmd := &cobra.Command{
		Use:   "invite NAME",
		Short: "Serve the bundle of a host once, over HTTPS, to a line that is typed there",
		Long: `Invite prints a line to type on the host, as its root, and waits until that has fetched
the bundle: for ten minutes at most. The line has a token of one use and the pin of a
key that is made for this call; the credentials of the host are made when the bundle is
fetched. The token is in a header, not in the URL, and in no log.`,
		Example: "  drover host invite legacy1 --program ./flanneld --program ./kube-proxy --program ./drover\n  drover host invite legacy1 --listen 10.28.0.2:8446",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			brought, err := readPrograms(programs)
			if err != nil {
				return err
			}
			_, err = with(cmd, server, func(inv *inventory) (none struct{}, err error) {
				return none, inv.invite(cmd, cluster, args[0], listen, brought)
			})
			return err
		},
	}
	server.flags(cmd)
	clusterFlag(cmd, &cluster)
	cmd.Flags().StringVar(&listen, "listen", "", "address and port to serve at, as the host reaches it (default server.address of the config, port "+invitePort+")")
	programFlag(cmd, &programs)
	return cmd
}

// invite serves an invitation for a host until it is used.
func (inv *inventory) invite(cmd *cobra.Command, cluster, name, listen string, programs []bundle.Program) error {
	if listen == "" {
		if !inv.address.IsValid() {
			return &cli.Error{Code: cli.Usage, Err: errors.New("the config has no server.address: give --listen ADDRESS:PORT, where the host reaches this server")}
		}
		listen = net.JoinHostPort(inv.address.String(), invitePort)
	}
	address, _, err := net.SplitHostPort(listen)
	if err != nil || address == "" {
		return &cli.Error{Code: cli.Usage, Err: fmt.Errorf("--listen %q: want ADDRESS:PORT, as the host reaches it", listen)}
	}
	ctx := cmd.Context()
	// What is wrong with the host is known before anybody types the line.
	r, err := inv.ready(ctx, cluster, name)
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return fmt.Errorf("listen at %s: %w", listen, err)
	}
	i, err := invite.New(name, l.Addr().String(), l, func(ctx context.Context, w io.Writer) error {
		h, err := inv.bundle(ctx, r.Cluster, name)
		if err != nil {
			return err
		}
		return bundle.Write(w, h, time.Now(), programs...)
	})
	if err != nil {
		_ = l.Close()
		return err
	}
	i.Log = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
	fmt.Fprintf(cmd.ErrOrStderr(), "on %s, as root, within %s:\n", name, invite.Lifetime)
	if _, err := fmt.Fprintln(cmd.OutOrStdout(), i.Command()); err != nil {
		_ = l.Close()
		return err
	}
	return i.Serve(ctx)
}
