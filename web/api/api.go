// Package api is the REST API.
//
//	GET    /api/v1/nodes          all nodes, declared or added
//	POST   /api/v1/nodes          add one: a node as in the config file, and "pool"
//	GET    /api/v1/nodes/{name}
//	PATCH  /api/v1/nodes/{name}   JSON merge patch (RFC 7386)
//	DELETE /api/v1/nodes/{name}
//	POST   /api/v1/nodes:batch    several changes of nodes, all of them or none
//	GET    /api/v1/chassis        chassis of the config, with the result of the last reading
//	POST   /api/v1/chassis/{name}/sync  read one now
//	GET    /api/v1/power          power jobs, the newest first; /{id} is one of them
//	POST   /api/v1/power          switch machines
//	GET    /api/v1/audit          actions and their clients, the newest first; ?node= and ?limit=
//	GET    /api/v1/boots          timelines, newest first; ?node= and ?limit=
//	GET    /api/v1/leases         leased addresses and those in quarantine; ?pool= and ?state=
//	DELETE /api/v1/leases/{address}  end a lease, or lift a quarantine
//	GET    /api/v1/unknown        unknown machines, the last seen first
//	DELETE /api/v1/unknown/{mac}  remove one
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
	"net/url"
	"slices"
	"strconv"
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
	RemoveNode(name string) error
	// ChangeNodes makes several changes, all of them or none. It also returns
	// [pools.ErrChanged].
	ChangeNodes(changes []pools.NodeChange) error
}

// Boots is the table of boots.
type Boots interface {
	// List returns all boots, the newest first. The caller may change the list, but
	// not the steps in it.
	List() []boots.Record
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
	Hardware  Hardware
	Power     Power
	Audit     Audit
	Tokens    Tokens

	// Ready lists the parts that are not ready.
	Ready func(ctx context.Context) []Problem
	// CheckImage returns what is wrong with a reference to an image.
	CheckImage func(ref string) error
	// Moves lists the nodes on their way out of a cluster.
	Moves func() []pools.Move

	Log *slog.Logger
	Now func() time.Time
}

// Handler returns the handler for all requests below /api/.
func (a *API) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/api/v1/nodes", answer.By(a.Log, answer.Methods{"GET": a.listNodes, "POST": a.addNode}))
	mux.Handle("/api/v1/nodes/{name}", answer.By(a.Log, answer.Methods{"GET": a.getNode, "PATCH": a.patchNode, "DELETE": a.removeNode}))
	mux.Handle("/api/v1/nodes/{name}/next-boot", answer.By(a.Log, answer.Methods{"PUT": a.setNextBoot, "DELETE": a.clearNextBoot}))
	mux.Handle("/api/v1/nodes:batch", answer.By(a.Log, answer.Methods{"POST": a.changeNodes}))
	mux.Handle("/api/v1/chassis", answer.By(a.Log, answer.Methods{"GET": a.listChassis}))
	mux.Handle("/api/v1/chassis/{name}/sync", answer.By(a.Log, answer.Methods{"POST": a.syncChassis}))
	mux.Handle("/api/v1/power", answer.By(a.Log, answer.Methods{"GET": a.listJobs, "POST": a.startPower}))
	mux.Handle("/api/v1/power/{id}", answer.By(a.Log, answer.Methods{"GET": a.getJob}))
	mux.Handle("/api/v1/audit", answer.By(a.Log, answer.Methods{"GET": a.listAudit}))
	mux.Handle("/api/v1/boots", answer.By(a.Log, answer.Methods{"GET": a.listBoots}))
	mux.Handle("/api/v1/leases", answer.By(a.Log, answer.Methods{"GET": a.listLeases}))
	mux.Handle("/api/v1/leases/{address}", answer.By(a.Log, answer.Methods{"DELETE": a.endLease}))
	mux.Handle(TokenPath, answer.By(a.Log, answer.Methods{"GET": a.sharedToken}))
	mux.Handle("/api/v1/unknown", answer.By(a.Log, answer.Methods{"GET": a.listUnknowns}))
	mux.Handle("/api/v1/unknown/{mac}", answer.By(a.Log, answer.Methods{"DELETE": a.forgetUnknown}))
	mux.Handle("/", answer.By(a.Log, nil))
	return mux
}

// withMoves returns nodes with their next boots and moves.
func (a *API) withMoves(infos ...pools.NodeInfo) []pools.NodeInfo {
	moves := map[string]*pools.Move{}
	for _, m := range a.Moves() {
		moves[m.As] = &m
	}
	nodes := make([]pools.NodeInfo, len(infos)) // not nil: [] rather than null
	for i, n := range infos {
		nodes[i] = a.withNext(n)
		nodes[i].Move = moves[n.Name]
	}
	return nodes
}

func (a *API) listNodes(w http.ResponseWriter, _ *http.Request) error {
	answer.JSON(w, http.StatusOK, a.withMoves(a.Farm.Farm().Nodes()...))
	return nil
}

func (a *API) getNode(w http.ResponseWriter, r *http.Request) error {
	return a.node(w, r.PathValue("name"), http.StatusOK)
}

// node answers with the current node of that name.
func (a *API) node(w http.ResponseWriter, name string, code int) error {
	n, ok := a.Farm.Farm().Node(name)
	if !ok {
		return fmt.Errorf("%w: %q", pools.ErrNotFound, name)
	}
	answer.JSON(w, code, a.withMoves(n)[0])
	return nil
}

func (a *API) addNode(w http.ResponseWriter, r *http.Request) error {
	var n pools.PoolNode
	if err := readJSON(r, &n); err != nil {
		return err
	}
	if err := a.AddNode(n, byToken(r)); err != nil {
		return err
	}
	w.Header().Set("Location", "/api/v1/nodes/"+n.Name)
	return a.node(w, n.Name, http.StatusCreated)
}

func (a *API) patchNode(w http.ResponseWriter, r *http.Request) error {
	patch, err := readBody(r, "application/merge-patch+json", "application/json")
	if err != nil {
		return err
	}
	name := r.PathValue("name")
	err = a.Nodes.UpdateNode(name, func(n pools.PoolNode) (pools.PoolNode, error) {
		err := decode.JSON(patch, &n)
		return n, err
	})
	if err != nil {
		return err
	}
	a.record(byToken(r), "change node", name)
	return a.node(w, name, http.StatusOK)
}

func (a *API) removeNode(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	if err := a.Nodes.RemoveNode(name); err != nil {
		return err
	}
	a.record(byToken(r), "remove node", name)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// limitOf returns the number of elements that a list is limited to.
func limitOf(query url.Values, usual, most int) (int, error) {
	s := query.Get("limit")
	if s == "" {
		return usual, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > most {
		return 0, answer.BadRequest("limit %q: want a number from 1 to %d", s, most)
	}
	return n, nil
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
