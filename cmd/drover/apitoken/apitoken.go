// Package apitoken is the commands of drover that make, list, rotate and revoke named tokens
// of the REST API.
//
// It does not know what a role may do: the server does.
package apitoken

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/pools"
	"drover/web/client"
)

// Commands returns the commands, which call the API by c.
func Commands(c *cli.Client) []*cobra.Command {
	return []*cobra.Command{newCreateCommand(c), newListCommand(c), newRotateCommand(c), newRevokeCommand(c)}
}

// roles returns the names of the roles, the least first.
func roles() (all []string) {
	for _, r := range pools.Roles() {
		all = append(all, string(r))
	}
	return all
}

func newCreateCommand(c *cli.Client) *cobra.Command {
	var role string
	var of []string
	var ttl time.Duration
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Make a token of the REST API with a role",
		Long: `Create prints a new token, or writes it to a file that its owner alone can read.
drover keeps only its hash: nobody can show it again. A file that exists is replaced only if it
is empty or holds a token.

  metrics   read /metrics
  viewer    and read everything that is not secret
  operator  and change and switch nodes, of the given pools or of all
  admin     and read the config and join tokens, and make tokens`,
		Example: `  drover token create prometheus --role metrics --write /etc/prometheus/drover.token
  drover token create night-shift --role operator --pool compute --ttl 12h`,
		Args: cobra.ExactArgs(1),
	}
	show(cmd, func(ctx context.Context, args []string) (pools.NewAPIToken, error) {
		err := check(cmd, of, ttl)
		if !slices.Contains(roles(), role) {
			err = fmt.Errorf("unknown role %q (one of %s)", role, strings.Join(roles(), ", "))
		}
		if err != nil {
			return pools.NewAPIToken{}, &cli.Error{Code: cli.Usage, Err: err}
		}
		req := pools.APITokenRequest{Name: args[0], Role: pools.Role(role), Pools: of, TTL: pools.Duration(ttl)}
		return cli.Send(ctx, c, client.CreateToken, req)
	})
	f := cmd.Flags()
	f.StringVar(&role, "role", "", "what it may do: "+strings.Join(roles(), "|"))
	f.StringSliceVar(&of, "pool", nil, "a pool whose nodes an operator may change; default: all")
	cli.DurationFlag(f, &ttl, "ttl", 0, "time until it expires, such as 30d; default: never")
	_ = cmd.MarkFlagRequired("role")
	_ = cmd.RegisterFlagCompletionFunc("role", cobra.FixedCompletions(roles(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// check rejects flags that are given without a value, such as a variable of a script that is not
// set: without them a token would be one for all pools, or one without an end.
func check(cmd *cobra.Command, of []string, ttl time.Duration) error {
	empty := func(pool string) bool { return strings.TrimSpace(pool) == "" }
	switch f := cmd.Flags(); {
	case f.Changed("pool") && (len(of) == 0 || slices.ContainsFunc(of, empty)):
		return errors.New("--pool: the name of the pool is empty (leave --pool out for all pools)")
	case f.Changed("ttl") && ttl <= 0:
		return fmt.Errorf("--ttl %s: want more than nothing (leave --ttl out for a token that never expires)", ttl)
	}
	return nil
}

func newRotateCommand(c *cli.Client) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rotate NAME",
		Short: "Give a token of the REST API another secret",
		Long: `Rotate prints the new secret, or writes it to a file. The old one, and the sessions of
the page that began with it, end at once. A token that expires lives as long again.`,
		Example: "  drover token rotate ci\n  drover token rotate prometheus --write /etc/prometheus/drover.token",
		Args:    cobra.ExactArgs(1),
	}
	show(cmd, func(ctx context.Context, args []string) (pools.NewAPIToken, error) {
		return cli.Send(ctx, c, client.RotateToken, client.None{}, args[0])
	})
	return cmd
}

// show makes a command print the token that get returns, or write it to the file of --write.
func show(cmd *cobra.Command, get func(context.Context, []string) (pools.NewAPIToken, error)) {
	var file string
	cmd.Flags().StringVar(&file, "write", "", "write the token to this file, with mode 0600, and do not print it")
	held := "" // the name of a token whose secret only this command has
	cli.Show(cmd, "text", func(ctx context.Context, args []string) (made pools.NewAPIToken, err error) {
		request := func() (string, error) {
			made, err = get(ctx, args)
			held = made.Name
			return made.Token, err
		}
		switch {
		case file != "":
			if err = writeSecret(file, request); err == nil {
				made.Token, held = "", ""
			}
		case cmd.Flags().Changed("write"):
			err = &cli.Error{Code: cli.Usage, Err: errors.New("--write: the name of the file is empty")}
		default:
			_, err = request()
		}
		return made, err
	}, func(w io.Writer, t pools.NewAPIToken) error {
		if t.Token == "" {
			_, err := fmt.Fprintf(w, "wrote %s\n", file)
			return err
		}
		_, err := fmt.Fprintln(w, t.Token)
		return err
	})
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		err := run(cmd, args)
		if err != nil && held != "" {
			err = fmt.Errorf("token %q is made, and its secret is lost: %w (drover token rotate %s gives it another)", held, err, held)
		}
		return err
	}
}

func newListCommand(c *cli.Client) *cobra.Command {
	var order cli.Order
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the tokens of the REST API",
		Long:    "List shows the named tokens, also expired ones. It does not have their secrets.",
		Example: "  drover token list\n  drover token list --sort -expires\n  drover token list -o json",
		Args:    cobra.NoArgs,
	}
	cli.Show(cmd, "text", func(ctx context.Context, _ []string) ([]pools.APIToken, error) {
		by, err := order.Query()
		if err != nil {
			return nil, err
		}
		return cli.Get(ctx, c, client.Tokens, "sort", by)
	}, func(w io.Writer, all []pools.APIToken) error {
		return cli.Table(w, all, "NAME\tROLE\tPOOLS\tCREATED\tBY\tEXPIRES", func(t pools.APIToken) []any {
			expires := "never"
			if !t.Expires.IsZero() {
				expires = t.Expires.UTC().Format(time.DateTime)
			}
			return []any{t.Name, string(t.Role), strings.Join(t.Pools, ","), t.Created, t.By, expires}
		})
	})
	order.Flag(cmd, "name", "role", "expires")
	return cmd
}

func newRevokeCommand(c *cli.Client) *cobra.Command {
	return c.DeleteEach(&cobra.Command{
		Use:     "revoke NAME...",
		Short:   "Revoke tokens of the REST API",
		Long:    "Revoke ends tokens, and the sessions of the page that began with them, at once.",
		Example: "  drover token revoke ci",
		Args:    cobra.MinimumNArgs(1),
	}, client.RevokeToken, "revoked", cli.AnyName)
}
