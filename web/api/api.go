// Package api is the REST API.
//
//	GET    /api/v1/nodes          all nodes, declared or added
//	POST   /api/v1/nodes          add one: a node as in the config file, and "pool"
//	GET    /api/v1/nodes/{name}
//	PATCH  /api/v1/nodes/{name}   JSON merge patch (RFC 7386)
//	DELETE /api/v1/nodes/{name}
//	POST   /api/v1/nodes:batch    several changes of nodes, all of them or none
//	GET    /api/v1/config         the config in force; POST /api/v1/config:reload reads the file again
//	GET    /api/v1/chassis        chassis of the config, with the result of the last reading
//	POST   /api/v1/chassis/{name}/sync  read one now
//	GET    /api/v1/power          power jobs, the newest first; /{id} is one of them
//	POST   /api/v1/power          switch machines
//	GET    /api/v1/audit          actions and their clients, the newest first; ?node= and ?limit=
//	GET    /api/v1/boots          timelines, newest first; ?node= and ?limit=
//	DELETE /api/v1/boots/{node}   forget the boots of a node
//	GET    /api/v1/addresses      free addresses for nodes in the network of ?link=
//	GET    /api/v1/leases         leased addresses and those in quarantine; ?pool= and ?state=
//	DELETE /api/v1/leases/{address}  end a lease, or lift a quarantine
//	GET    /api/v1/unknown        unknown machines, the last seen first
//	DELETE /api/v1/unknown/{mac}  remove one
//
// A request to change something takes ?dryRun=true: it is checked, and changes nothing.
// Unknown parameters are refused.
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
	// CheckNodes returns the error that ChangeNodes would return, and changes nothing.
	CheckNodes(changes []pools.NodeChange) error
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
	Hardware  Hardware
	Power     Power
	Audit     Audit
	Tokens    Tokens

	ConfigFile ConfigFile

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
	route := func(pattern string, m answer.Methods, parameters ...string) {
		mux.Handle(pattern, answer.By(a.Log, checked(m, parameters)))
	}
	route("/api/v1/nodes", answer.Methods{"GET": a.listNodes, "POST": a.addNode}, "catchall")
	route("/api/v1/nodes/{name}", answer.Methods{"GET": a.getNode, "PATCH": a.patchNode, "DELETE": a.removeNode})
	route("/api/v1/nodes/{name}/next-boot", answer.Methods{"PUT": a.setNextBoot, "DELETE": a.clearNextBoot})
	route(ConfigPath, answer.Methods{"GET": a.getConfig})
	route(ConfigPath+":reload", answer.Methods{"POST": a.reloadConfig})
	route("/api/v1/nodes:batch", answer.Methods{"POST": a.changeNodes})
	route("/api/v1/chassis", answer.Methods{"GET": a.listChassis})
	route("/api/v1/chassis/{name}/sync", answer.Methods{"POST": a.syncChassis})
	route("/api/v1/power", answer.Methods{"GET": a.listJobs, "POST": a.startPower})
	route("/api/v1/power/{id}", answer.Methods{"GET": a.getJob})
	route("/api/v1/audit", answer.Methods{"GET": a.listAudit}, "node", "limit")
	route("/api/v1/boots", answer.Methods{"GET": a.listBoots}, "node", "limit", "pool", "stuck", "since", "before")
	route("/api/v1/boots/{node}", answer.Methods{"DELETE": a.forgetBoots})
	route("/api/v1/addresses", answer.Methods{"GET": a.listAddresses}, "link", "limit")
	route("/api/v1/leases", answer.Methods{"GET": a.listLeases}, "pool", "state")
	route("/api/v1/leases/{address}", answer.Methods{"DELETE": a.endLease})
	route(TokenPath, answer.Methods{"GET": a.sharedToken})
	route("/api/v1/unknown", answer.Methods{"GET": a.listUnknowns})
	route("/api/v1/unknown/{mac}", answer.Methods{"DELETE": a.forgetUnknown})
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

// listNodes answers with all nodes, and with ?catchall=true also with the machines of
// catch-all pools.
func (a *API) listNodes(w http.ResponseWriter, r *http.Request) error {
	o := a.observe()
	nodes := a.withMoves(a.Farm.Farm().Nodes()...)
	switch s := r.URL.Query().Get("catchall"); s {
	case "", "false":
	case "true":
		nodes = append(nodes, o.catchAll()...)
	default:
		return answer.BadRequest("catchall %q: want true or false", s)
	}
	answer.JSON(w, http.StatusOK, a.withStatus(nodes, o))
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
	answer.JSON(w, code, a.withStatus(a.withMoves(n), a.observe())[0])
	return nil
}

func (a *API) addNode(w http.ResponseWriter, r *http.Request) error {
	var n pools.PoolNode
	if err := readJSON(r, &n); err != nil {
		return err
	}
	if dryRun(r) {
		return a.preview(w, pools.NodeChange{New: &n})
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
	edit := func(n pools.PoolNode) (pools.PoolNode, error) {
		err := decode.JSON(patch, &n)
		return n, err
	}
	if dryRun(r) {
		return a.previewPatch(w, name, edit)
	}
	err = a.Nodes.UpdateNode(name, edit)
	if err != nil {
		return err
	}
	a.record(byToken(r), "change node", name)
	return a.node(w, name, http.StatusOK)
}

func (a *API) removeNode(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	if dryRun(r) {
		n, ok := a.Farm.Farm().Node(name)
		if !ok {
			return fmt.Errorf("%w: %q", pools.ErrNotFound, name)
		}
		return a.preview(w, pools.NodeChange{Old: &n.PoolNode})
	}
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
