package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"drover/pools"

	"github.com/spf13/cobra"
)

// The limits of one call of the REST API.
const (
	apiTimeout = 30 * time.Second
	maxAnswer  = 64 << 20 // bytes
)

// Client calls the REST API of a running drover. [Client.Flags] sets it up.
type Client struct {
	base      string // https://drover.example.org:8443
	tokenFile string
	context   string
	changed   func(flag string) bool // reports whether a flag was given
	on        *target                // the server, once it is known
}

// Flags adds the flags --api, --token-file and --context to a command and its subcommands.
func (c *Client) Flags(cmd *cobra.Command) {
	f := cmd.PersistentFlags()
	f.StringVar(&c.base, "api", cmp.Or(os.Getenv("DROVER_API"), "http://127.0.0.1:8443"), "URL of the server's REST API (env DROVER_API)")
	f.StringVar(&c.tokenFile, "token-file", cmp.Or(os.Getenv("DROVER_TOKEN_FILE"), filepath.Join(DefaultState, "api.token")),
		"file with the API token (env DROVER_TOKEN_FILE)")
	f.StringVar(&c.context, "context", "", "server that you have logged in to (drover context list)")
	c.changed = f.Changed
	_ = cmd.MarkPersistentFlagFilename("token-file")
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
	return c.call(ctx, method, path, in, out, http.StatusOK)
}

// CallAccepting is [Client.Call] without a body, for a path whose answer with this status,
// too, is the resource, and no error.
func (c *Client) CallAccepting(ctx context.Context, method, path string, status int, out any) error {
	return c.call(ctx, method, path, nil, out, status)
}

func (c *Client) call(ctx context.Context, method, path string, in, out any, accepted int) error {
	to, err := c.find()
	if err != nil {
		return err
	}
	var body io.Reader = http.NoBody
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, to.base+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+to.token)
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := to.http.Do(req)
	if err != nil {
		if cause, ok := errors.AsType[*url.Error](err); ok {
			err = cause.Err
		}
		return &Error{Unreachable, fmt.Errorf("%s does not answer: %w (is drover serve running there? --api or DROVER_API says where)", to.base, err)}
	}
	defer resp.Body.Close()
	return to.read(resp, out, accepted)
}

// DeleteEach makes cmd, a command whose arguments are names, one that deletes the resources
// with these names below a path, one by one, and prints each with the word done. Its
// arguments are checked first. It goes on after an error, unless the server is unreachable
// or refuses the token.
func (c *Client) DeleteEach(cmd *cobra.Command, path, done string, check func(name string) error) *cobra.Command {
	var each Each
	each.Flag(cmd)
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		for _, name := range names {
			if err := check(name); err != nil {
				return &Error{Usage, err}
			}
		}
		return each.Do(cmd, done, names, func(name string) error {
			return c.Call(cmd.Context(), http.MethodDelete, path+"/"+url.PathEscape(name), nil, nil)
		})
	}
	return cmd
}

// AnyName is a check of [Client.DeleteEach] that leaves it to the server.
func AnyName(string) error { return nil }

// read decodes an answer of the API into out, or returns its error. An answer with the
// status accepted is none.
func (t *target) read(resp *http.Response, out any, accepted int) error {
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return &Error{Unreachable, fmt.Errorf("%s: the answer broke off: %w", t.base, err)}
	}
	switch {
	case resp.StatusCode == http.StatusUnauthorized:
		return &Error{Refused, fmt.Errorf("%s refused the token in %s (is it that server's api.token?)", t.base, t.from)}
	case resp.StatusCode >= 300 && resp.StatusCode != accepted:
		var failure struct{ Error, Where string }
		if json.Unmarshal(data, &failure) != nil || failure.Error == "" {
			return fmt.Errorf("%s answered %s: is that the API of a drover?", t.base, resp.Status)
		}
		if resp.StatusCode == http.StatusForbidden || resp.StatusCode == http.StatusTooManyRequests {
			return &Error{Refused, errors.New(failure.Error)}
		}
		return errors.New(failure.Error)
	case out == nil:
		return nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("%s gave an answer that is not of the API of a drover: %w", t.base, err)
	}
	return nil
}

// Get returns the resource at path. The pairs are names and values of a query; it omits
// those with an empty value.
func Get[T any](ctx context.Context, c *Client, path string, pairs ...string) (v T, err error) {
	query := url.Values{}
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			query.Set(pair[0], pair[1])
		}
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	err = c.Call(ctx, http.MethodGet, path, nil, &v)
	return v, err
}

// Nodes returns all nodes of the server: declared and added ones.
func (c *Client) Nodes(ctx context.Context) ([]pools.NodeInfo, error) {
	return Get[[]pools.NodeInfo](ctx, c, NodesPath)
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
	return c.Call(ctx, http.MethodPost, NodesPath+":batch", map[string]any{"changes": changes}, nil)
}
