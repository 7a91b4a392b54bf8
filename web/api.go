package web

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"drover/pools"
	"drover/pools/boots"
	"drover/pools/config"
)

// api is the REST API.
type api struct {
	server *Server
}

// maxBoots bounds the answer to a list of boots, and is the default limit.
const maxBoots = 1000

// node is a node as the API shows it.
type node struct {
	pools.NodeInfo
	Move *pools.Move `json:"move,omitempty"` // it is on its way out of a cluster
}

// withMoves adds to nodes where they move.
func (a *api) withMoves(infos ...pools.NodeInfo) []node {
	moves := map[string]*pools.Move{}
	for _, m := range a.server.Moves() {
		moves[m.As] = &m
	}
	nodes := make([]node, len(infos)) // not nil: [] rather than null
	for i, n := range infos {
		nodes[i] = node{a.withNext(n), moves[n.Name]}
	}
	return nodes
}

func (a *api) listNodes(w http.ResponseWriter, _ *http.Request) error {
	writeJSON(w, http.StatusOK, a.withMoves(a.server.Farm.Farm().Nodes()...))
	return nil
}

func (a *api) getNode(w http.ResponseWriter, r *http.Request) error {
	return a.node(w, r.PathValue("name"), http.StatusOK)
}

// node answers with the node of that name as it is now.
func (a *api) node(w http.ResponseWriter, name string, code int) error {
	n, ok := a.server.Farm.Farm().Node(name)
	if !ok {
		return fmt.Errorf("%w: %q", pools.ErrNotFound, name)
	}
	writeJSON(w, code, a.withMoves(n)[0])
	return nil
}

func (a *api) addNode(w http.ResponseWriter, r *http.Request) error {
	var n pools.PoolNode
	if err := readJSON(r, &n); err != nil {
		return err
	}
	if err := a.server.addNode(n, byToken(r)); err != nil {
		return err
	}
	w.Header().Set("Location", "/api/v1/nodes/"+n.Name)
	return a.node(w, n.Name, http.StatusCreated)
}

func (a *api) patchNode(w http.ResponseWriter, r *http.Request) error {
	patch, err := readBody(r, "application/merge-patch+json", "application/json")
	if err != nil {
		return err
	}
	name := r.PathValue("name")
	err = a.server.Nodes.UpdateNode(name, func(n pools.PoolNode) (pools.PoolNode, error) {
		err := config.DecodeJSON(patch, &n)
		return n, err
	})
	if err != nil {
		return err
	}
	a.server.record(byToken(r), "change node", name)
	return a.node(w, name, http.StatusOK)
}

func (a *api) removeNode(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	if err := a.server.Nodes.RemoveNode(name); err != nil {
		return err
	}
	a.server.record(byToken(r), "remove node", name)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// listBoots answers with timelines, the newest first.
func (a *api) listBoots(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	if err := onlyParameters(query, "node", "limit"); err != nil {
		return err
	}
	limit := maxBoots
	if s := query.Get("limit"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > maxBoots {
			return badRequest("limit %q: want a number from 1 to %d", s, maxBoots)
		}
		limit = n
	}
	all := boots.MarkStuck(a.server.Boots.List(), a.server.Now())
	if name := query.Get("node"); name != "" {
		all = slices.DeleteFunc(all, func(b boots.Record) bool { return b.Node != name })
	}
	all = all[:min(limit, len(all))]
	if all == nil {
		all = []boots.Record{}
	}
	writeJSON(w, http.StatusOK, all)
	return nil
}

// readJSON decodes the body of a request into v, a pointer to a struct.
func readJSON(r *http.Request, v any) error {
	body, err := readBody(r, "application/json")
	if err != nil {
		return err
	}
	return config.DecodeJSON(body, v)
}

// readBody reads the body of a request that is of one of the types.
func readBody(r *http.Request, types ...string) ([]byte, error) {
	t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || !slices.Contains(types, t) {
		return nil, &failure{
			code: http.StatusUnsupportedMediaType,
			msg:  fmt.Sprintf("Content-Type %q: want %s", r.Header.Get("Content-Type"), strings.Join(types, " or ")),
		}
	}
	data, err := io.ReadAll(r.Body)
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return nil, err
		}
		return nil, badRequest("the body did not arrive: %v", err)
	}
	return data, nil
}
