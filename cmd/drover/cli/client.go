package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"drover/pools"
	"drover/web/client"
)

// apiTimeout limits one call of the REST API.
const apiTimeout = 30 * time.Second

// Client calls the REST API of a running drover. [Client.Flags] sets it up.
type Client struct {
	base      string // https://drover.example.org:8443
	tokenFile string
	context   string
	elsewhere bool                   // a server of this host with another state directory than the default
	changed   func(flag string) bool // reports whether a flag was given
	on        *target                // the server, once it is known
}

// Flags adds the flags --api, --token-file and --context to a command and its subcommands.
func (c *Client) Flags(cmd *cobra.Command) {
	f := cmd.PersistentFlags()
	f.StringVar(&c.base, "api", cmp.Or(os.Getenv("DROVER_API"), "http://127.0.0.1:8443"), "URL of the server's REST API, or unix:PATH of its socket (env DROVER_API)")
	f.StringVar(&c.tokenFile, "token-file", cmp.Or(os.Getenv("DROVER_TOKEN_FILE"), filepath.Join(DefaultState, "api.token")),
		"file with the API token (env DROVER_TOKEN_FILE)")
	f.StringVar(&c.context, "context", "", "server that you have logged in to (drover context list)")
	c.changed = f.Changed
	_ = cmd.MarkPersistentFlagFilename("token-file")
}

// InState makes the server of a state directory the one to ask, with the token and the address in
// it, unless flags or the environment say which. The default directory changes nothing.
func (c *Client) InState(dir string) {
	if filepath.Clean(dir) == DefaultState || c.hasToken() {
		return
	}
	c.tokenFile, c.elsewhere = filepath.Join(dir, "api.token"), true
}

// ClientOf returns a client by the flags of a command, which [Client.Flags] added; nil if it
// has none.
func ClientOf(cmd *cobra.Command) *Client {
	base, token, context := cmd.Flag("api"), cmd.Flag("token-file"), cmd.Flag("context")
	if base == nil || token == nil || context == nil {
		return nil
	}
	return &Client{base: base.Value.String(), tokenFile: token.Value.String(), context: context.Value.String(), changed: cmd.Flags().Changed}
}

// Call sends in as JSON and decodes the answer into out; each may be nil. Its errors
// have the exit codes [Usage], [Unreachable] and [Refused] where these apply.
func (c *Client) Call(ctx context.Context, method, path string, in, out any) error {
	return c.do(ctx, client.Call{Method: method, Path: path, In: in, Out: out})
}

// CallAccepting is [Client.Call] without a body, for a path whose answer with this status,
// too, is the resource, and no error.
func (c *Client) CallAccepting(ctx context.Context, method, path string, status int, out any) error {
	return c.do(ctx, client.Call{Method: method, Path: path, Out: out, Accepted: status})
}

func (c *Client) do(ctx context.Context, call client.Call) error {
	to, err := c.find()
	if err != nil {
		return err
	}
	_, err = to.Do(ctx, call)
	return to.coded(err)
}

// DeleteEach makes cmd, a command whose arguments are names, one that deletes the resources
// with these names, one by one, and prints each with the word done. Its
// arguments are checked first. It goes on after an error, unless the server is unreachable
// or refuses the token.
func (c *Client) DeleteEach(cmd *cobra.Command, deletes client.Change[client.None, client.None], done string, check func(name string) error) *cobra.Command {
	var each Each
	each.Flag(cmd)
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		for _, name := range names {
			if err := check(name); err != nil {
				return &Error{Usage, err}
			}
		}
		return each.Do(cmd, done, names, func(name string) error {
			_, err := Send(cmd.Context(), c, deletes, client.None{}, name)
			return err
		})
	}
	return cmd
}

// AnyName is a check of [Client.DeleteEach] that leaves it to the server.
func AnyName(string) error { return nil }

// coded returns an error of the API for the operator, with its exit code.
func (t *target) coded(err error) error {
	if gone, ok := errors.AsType[*client.UnreachableError](err); ok {
		return &Error{Unreachable, fmt.Errorf("%s does not answer: %w (is drover serve running there? --api or DROVER_API says where)", t.Base, gone.Err)}
	}
	e, ok := errors.AsType[*client.Error](err)
	switch {
	case !ok:
		return err
	case e.Status == http.StatusUnauthorized && t.Token == "":
		return &Error{Refused, fmt.Errorf("%s has no role for %s (see server.clientCertificates there)", t.Base, t.from)}
	case e.Status == http.StatusUnauthorized:
		return &Error{Refused, fmt.Errorf("%s refused the token in %s (is it that server's api.token?)", t.Base, t.from)}
	case e.Problem.Error == "":
		return fmt.Errorf("%s %w", t.Base, err)
	case e.Status == http.StatusForbidden, e.Status == http.StatusTooManyRequests:
		return &Error{Refused, err}
	}
	return err
}

// Get returns what is at a path. The pairs are names and values of a query; it omits
// those with an empty value.
func Get[T any](ctx context.Context, c *Client, path client.Path[T], pairs ...string) (v T, err error) {
	to, err := c.find()
	if err != nil {
		return v, err
	}
	v, err = client.Get(ctx, &to.Client, path, queryOf(pairs))
	return v, to.coded(err)
}

func queryOf(pairs []string) url.Values {
	query := url.Values{}
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			query.Set(pair[0], pair[1])
		}
	}
	return query
}

// Send makes a change. Names take the places of those in braces in its path.
func Send[In, Out any](ctx context.Context, c *Client, change client.Change[In, Out], in In, names ...string) (out Out, err error) {
	to, err := c.find()
	if err != nil {
		return out, err
	}
	out, err = client.Send(ctx, &to.Client, change, in, names...)
	return out, to.coded(err)
}

// Watch returns a list and its changes: see [client.Watch]. The pairs are those of [Get].
func Watch[E any](ctx context.Context, c *Client, path client.Path[[]E], pairs ...string) iter.Seq2[client.Event[E], error] {
	return func(yield func(client.Event[E], error) bool) {
		to, err := c.find()
		if err != nil {
			yield(client.Event[E]{}, err)
			return
		}
		for e, err := range client.Watch(ctx, &to.Client, path, queryOf(pairs)) {
			if !yield(e, to.coded(err)) {
				return
			}
		}
	}
}

// Nodes returns all nodes of the server: declared and added ones.
func (c *Client) Nodes(ctx context.Context) ([]pools.NodeInfo, error) {
	return Get(ctx, c, client.Nodes)
}

// AddedNodes returns the nodes that were added over the API of the server.
func (c *Client) AddedNodes(ctx context.Context) (added []pools.PoolNode, err error) {
	all, err := c.Nodes(ctx)
	for _, n := range all {
		if !n.Declared() {
			added = append(added, n.PoolNode)
		}
	}
	return added, err
}

// ChangeNodes makes all changes in one transaction: all or none.
func (c *Client) ChangeNodes(ctx context.Context, changes []pools.NodeChange) error {
	_, err := Send(ctx, c, client.ChangeNodes, pools.NodeBatch{Changes: changes})
	return err
}
