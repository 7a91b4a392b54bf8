// Package login has the commands for servers on other hosts: login, logout, and context list
// and use.
package login

import (
	"bufio"
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/cmd/drover/cli/contexts"
	"drover/internal/atomicfile"
	"drover/web/client"
)

// maxFile bounds the files of a token and of a CA, in bytes.
const maxFile = 1 << 20

// Commands returns the commands.
func Commands() []*cobra.Command {
	context := &cobra.Command{Use: "context", Short: "Servers that you have logged in to"}
	return []*cobra.Command{newLoginCommand(), newLogoutCommand(), cli.Group(context, newListCommand(), newUseCommand())}
}

// entry is a context without its token.
type entry struct {
	Name    string `json:"name"`
	URL     string `json:"url"`
	Trust   string `json:"trust"` // by what the server is known
	Current bool   `json:"current"`
}

func entryOf(x contexts.Context, current string) entry {
	e := entry{Name: x.Name, URL: x.URL, Trust: "authorities of this host", Current: x.Name == current}
	switch {
	case x.Pin != "":
		e.Trust = "pin " + x.Pin
	case x.CA != "":
		e.Trust = "a CA of its own"
	case strings.HasPrefix(x.URL, "http:"):
		e.Trust = "this host alone"
	}
	return e
}

// request holds the flags of drover login.
type request struct {
	name, caFile, pin, tokenFile string
	clientCert, clientKey        string
}

func newLoginCommand() *cobra.Command {
	var r request
	var output cli.Output
	cmd := &cobra.Command{
		Use:   "login URL",
		Short: "Use a server on another host from now on",
		Long: `Login tries a token on a server, and keeps both as a context in the operator's home (mode
0600): all commands then ask that server, unless --api or DROVER_API names another one, or
--context another context. It reads the token from --token-file or from standard input, never
from an argument. In place of a token it takes a client certificate (--client-cert and
--client-key), whose files stay where they are.

The server needs server.apiTLS. It is known by an authority of this host, by the CA of
--ca-file, or by --pin: the SHA-256 of its public key, or of its authority's. The log of the
server has the pin at start; drover status and drover doctor show it there, too.`,
		Example: `  drover login https://drover.example.org:8443 < drover.token
  drover login https://10.28.0.2:8443 --ca-file ca.pem --token-file drover.token
  drover login https://10.28.0.2:8443 --ca-file ca.pem --client-cert alice.crt --client-key alice.key
  drover login https://10.28.0.2:8443 --name rack --pin sha256:6b7e... < drover.token`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := r.run(cmd, args[0])
			if err != nil {
				return err
			}
			return output.PrintNamed(cmd, e, []string{e.Name}, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "logged in to %s, as context %s\n", e.URL, e.Name)
				return err
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.name, "name", "", "name of the context (default: the host of URL)")
	f.StringVar(&r.caFile, "ca-file", "", "PEM file of the CA that signed the server's certificate")
	f.StringVar(&r.pin, "pin", "", "SHA-256 of the public key of the server, or of the authority that it sends, in hexadecimal")
	f.StringVar(&r.tokenFile, "token-file", "", "file with the token (default: standard input)")
	f.StringVar(&r.clientCert, "client-cert", "", "PEM file of a client certificate, in place of a token")
	f.StringVar(&r.clientKey, "client-key", "", "PEM file of its key")
	cmd.MarkFlagsRequiredTogether("client-cert", "client-key")
	cmd.MarkFlagsMutuallyExclusive("client-cert", "token-file")
	_ = cmd.MarkFlagFilename("client-cert", "pem", "crt")
	_ = cmd.MarkFlagFilename("client-key", "pem", "key")
	_ = cmd.MarkFlagFilename("ca-file", "pem", "crt")
	_ = cmd.MarkFlagFilename("token-file")
	output.Flag(cmd, "text", "name", "json", "yaml")
	return cmd
}

func (r *request) run(cmd *cobra.Command, server string) (e entry, err error) {
	u, err := url.Parse(server)
	if err != nil || u.Host == "" {
		return e, &cli.Error{Code: cli.Usage, Err: fmt.Errorf("%q: want https://HOST:PORT", server)}
	}
	x := contexts.Context{Name: cmp.Or(r.name, u.Host), URL: strings.TrimSuffix(server, "/"), Pin: r.pin}
	switch {
	case r.pin != "" && r.caFile != "":
		return e, &cli.Error{Code: cli.Usage, Err: errors.New("--pin and --ca-file: give one of them")}
	case r.caFile != "":
		ca, err := atomicfile.Read(r.caFile, maxFile)
		if err != nil {
			return e, fmt.Errorf("--ca-file: %w", err)
		}
		x.CA = string(ca)
	}
	if r.clientCert != "" {
		if x.ClientCert, err = filepath.Abs(r.clientCert); err == nil {
			x.ClientKey, err = filepath.Abs(r.clientKey)
		}
		if err != nil {
			return e, err
		}
	}
	if _, err := x.TLS(); err != nil {
		return e, &cli.Error{Code: cli.Usage, Err: err}
	}
	if r.clientCert == "" {
		if x.Token, err = r.token(cmd); err != nil {
			return e, err
		}
	}
	c, err := cli.At(x)
	if err != nil {
		return e, err
	}
	if _, err := cli.Get(cmd.Context(), c, client.Version); err != nil {
		return e, withRemedy(err)
	}
	all, err := contexts.Load()
	if err != nil {
		return e, err
	}
	return entryOf(x, x.Name), all.Put(x)
}

// withRemedy adds to the error of a server that this host does not know how it is known.
func withRemedy(err error) error {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return fmt.Errorf("%w (give --ca-file, or --pin: drover doctor shows the pin on the host of the server)", err)
	}
	return err
}

// token reads the token. From a terminal it is not taken: it would be shown.
func (r *request) token(cmd *cobra.Command) (string, error) {
	if r.tokenFile != "" {
		text, err := atomicfile.Read(r.tokenFile, maxFile)
		if err != nil {
			return "", fmt.Errorf("--token-file: %w", err)
		}
		return cli.CheckToken(r.tokenFile, string(text))
	}
	if in, ok := cmd.InOrStdin().(*os.File); ok {
		if info, err := in.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			return "", &cli.Error{Code: cli.Usage, Err: errors.New("a terminal would show the token: give --token-file, or put it into standard input from a file")}
		}
	}
	line, err := bufio.NewReader(io.LimitReader(cmd.InOrStdin(), maxFile)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	return cli.CheckToken("standard input", line)
}

func newLogoutCommand() *cobra.Command {
	var each cli.Each
	cmd := &cobra.Command{
		Use:   "logout CONTEXT...",
		Short: "Forget a server and its token on this host",
		Long: `Logout removes contexts with their tokens from the operator's home. The tokens stay valid:
whoever gave them revokes them on the server.`,
		Example: "  drover logout drover.example.org:8443\n  drover logout rack -o json",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, names []string) error {
			return each.Do(cmd, "logged out of", names, func(name string) error {
				all, err := contexts.Load()
				if err != nil {
					return err
				}
				return all.Remove(name)
			})
		},
	}
	each.Flag(cmd)
	return cmd
}

func newListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the servers that you have logged in to",
		Example: "  drover context list\n  drover context list -o json",
		Args:    cobra.NoArgs,
	}
	cli.Show(cmd, "text", func(context.Context, []string) ([]entry, error) {
		all, err := contexts.Load()
		out := []entry{} // [] rather than null
		for _, x := range all.All {
			out = append(out, entryOf(x, all.Current))
		}
		return out, err
	}, func(w io.Writer, all []entry) error {
		return cli.Table(w, all, "CURRENT\tNAME\tURL\tTRUST", func(e entry) []any {
			current := ""
			if e.Current {
				current = "*"
			}
			return []any{current, e.Name, e.URL, e.Trust}
		})
	})
	return cmd
}

func newUseCommand() *cobra.Command {
	var each cli.Each
	cmd := &cobra.Command{
		Use:   "use CONTEXT",
		Short: "Choose the server that commands ask; - is that of this host",
		Example: `  drover context use rack
  drover context use -`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, names []string) error {
			return each.Do(cmd, "commands now ask", names, func(name string) error {
				all, err := contexts.Load()
				if err != nil {
					return err
				}
				return all.Use(strings.TrimPrefix(name, "-"))
			})
		},
	}
	each.Flag(cmd)
	return cmd
}
