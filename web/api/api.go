// Package api is the REST API. [API.Routes] is the table of its paths.
//
// A request to change something takes ?dryRun=true: it is checked, and changes nothing.
// Unknown parameters are refused. A client that is limited to pools changes only what
// belongs to them.
//
// Bodies are JSON, decoded as strictly as the config file: see [decode.JSON].
// Texts of unknown machines are shown as sent, and may contain anything.
//
// The package does not know how nodes are checked or stored, why the server is ready,
// or how addresses are leased. Interfaces of its own give it the farm, changes of the
// farm, and lists of boots, leases and unknown machines.
package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"drover/pools"
	"drover/pools/boots"
	"drover/pools/config/decode"
	"drover/pools/resolve"
	"drover/web/answer"
)

// Farm returns the farm in force.
type Farm interface {
	Farm() *resolve.Farm
}

// Changer changes the nodes of the farm. Its errors for a bad change are
// [pools.ErrExists], [pools.ErrNotFound], [*config.DeclaredError], [*pools.LeasedError]
// and [mistake.Errors]. Any other error means that the change could not be stored.
type Changer interface {
	AddNode(n pools.PoolNode) error
	UpdateNode(name string, edit func(pools.PoolNode) (pools.PoolNode, error)) error
	// ChangeNodes makes several changes, all of them or none. It also returns
	// [pools.ErrChanged].
	ChangeNodes(changes []pools.NodeChange) error
	// CheckNodes returns the error that ChangeNodes would return, and changes nothing.
	CheckNodes(changes []pools.NodeChange) error
	// ForgetRetired forgets nodes that the config has lost. The error is [pools.ErrNotRetired].
	ForgetRetired(names ...string) error
}

// Boots is the table of boots.
type Boots interface {
	// List returns all boots, the newest first. The caller may change the list, but
	// not the steps in it.
	List() []boots.Record
	// Forget removes the boots of a node and returns their number.
	Forget(node string) int
}

// Problem is a part of the server that is not ready.
type Problem struct {
	Part    string `json:"part"`    // its kind and name: "image debian-12"
	Problem string `json:"problem"` // cause and remedy

	// Brief is the problem for clients without the token: it has no names, addresses
	// and foreign texts. Empty: they see the kind of the part only.
	Brief string `json:"-"`

	// Warning marks a problem of a few machines only, or of none: the server is
	// ready.
	Warning bool `json:"warning,omitempty"`
}

// API is the REST API. Every field must be set.
type API struct {
	Farm      Farm
	Nodes     Changer
	Boots     Boots
	Leases    Leases // of all pools
	Unknowns  Unknowns
	NextBoots NextBoots
	Channels  Channels
	FallBacks FallBacks
	Hardware  Hardware
	Power     Power
	Audit     Audit
	Tokens    Tokens
	APITokens TokenStore
	Plans     Plans

	ConfigFile ConfigFile
	Configs    ConfigHistory
	Restorer   Restorer

	// Ready lists the parts that are not ready.
	Ready func(ctx context.Context) []Problem
	// Images lists the generations of images, without the pools that boot them. The caller
	// may change the list.
	Images func() []pools.ImageInfo
	// Generations returns the digest of the image that a pool boots now, by pool. It does not
	// wait for a disk that hangs. nil: none is known.
	Generations func() map[string]string
	// CheckImage returns what is wrong with a reference to an image.
	CheckImage func(ref string) error
	// Moves lists the nodes on their way out of a cluster.
	Moves func() []pools.Move

	// Pin returns the SHA-256 of the key by which clients know the server. nil: it has no TLS.
	Pin func() string
	// Version is that of the program.
	Version string

	Log *slog.Logger
	Now func() time.Time

	feeds feeds
}

// readJSON decodes the body of a request into v, a pointer to a struct.
func readJSON(r *http.Request, v any) error {
	body, err := readBody(r, "application/json")
	if err != nil {
		return err
	}
	return decode.JSON(body, v)
}

// readBody returns the body of a request, whose Content-Type must be one of types.
func readBody(r *http.Request, types ...string) ([]byte, error) {
	t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || !slices.Contains(types, t) {
		return nil, &answer.Error{
			Code: http.StatusUnsupportedMediaType,
			Msg:  fmt.Sprintf("Content-Type %q: want %s", r.Header.Get("Content-Type"), strings.Join(types, " or ")),
		}
	}
	data, err := io.ReadAll(r.Body)
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return nil, err
		}
		return nil, answer.BadRequest("the body did not arrive: %v", err)
	}
	return data, nil
}
