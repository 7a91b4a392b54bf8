package web

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"drover/pools"
	"drover/pools/printable"
)

// Hardware are the chassis of the config.
type Hardware interface {
	// Chassis is how all of them are, by name.
	Chassis() []pools.ChassisStatus
	// Sync has one asked now, and does not wait for it. It returns
	// [pools.ErrNoChassis] when there is none of that name.
	Sync(name string) error
}

// Power switches machines.
type Power interface {
	// Order begins to switch machines for who, and returns how that stands. It
	// refuses with [pools.ErrOrder] or [pools.ErrNotFound].
	Order(ctx context.Context, who string, o pools.PowerOrder) (pools.PowerJob, error)
	// Jobs are the orders that are remembered, the newest first.
	Jobs() []pools.PowerJob
	// Job is one of them; false when it is not remembered.
	Job(id string) (pools.PowerJob, bool)
}

// Audit keeps who did what.
type Audit interface {
	Add(entries ...pools.AuditEntry) error
	// List returns the newest entries, the newest first, limit at most.
	List(limit int) ([]pools.AuditEntry, error)
}

// noHardware is a server that manages none.
type noHardware struct{}

func (noHardware) Chassis() []pools.ChassisStatus { return []pools.ChassisStatus{} }
func (noHardware) Sync(name string) error         { return fmt.Errorf("%w %q", pools.ErrNoChassis, name) }
func (noHardware) Jobs() []pools.PowerJob         { return []pools.PowerJob{} }
func (noHardware) Job(string) (pools.PowerJob, bool) {
	return pools.PowerJob{}, false
}
func (noHardware) Order(context.Context, string, pools.PowerOrder) (pools.PowerJob, error) {
	return pools.PowerJob{}, fmt.Errorf("%w: this server switches nothing", pools.ErrOrder)
}
func (noHardware) Add(...pools.AuditEntry) error        { return nil }
func (noHardware) List(int) ([]pools.AuditEntry, error) { return []pools.AuditEntry{}, nil }

// byToken names who comes with the API token.
func byToken(r *http.Request) string { return "token from " + r.RemoteAddr }

// record notes what was done to a node, in the audit and in the log. What was
// done is not undone when it cannot be noted.
func (s *Server) record(who, action, node string) {
	s.Log.Info("audit", "action", action, "node", node, "who", who)
	if err := s.Audit.Add(pools.AuditEntry{Time: s.Now(), Who: who, Action: action, Node: node, Result: "done"}); err != nil {
		s.Log.Error("audit not stored", "err", err)
	}
}

// changeNodes makes changes of several nodes in one step.
func (a *api) changeNodes(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Changes []pools.NodeChange `json:"changes"`
	}
	if err := readJSON(r, &body); err != nil {
		return err
	}
	if body.Changes == nil {
		return badRequest(`want {"changes": [{"old": NODE, "new": NODE}]}, where a node that is new has no old, and one to be removed no new`)
	}
	changes := body.Changes
	if err := a.server.Nodes.ChangeNodes(changes); err != nil {
		return err
	}
	var entries []pools.AuditEntry
	for _, c := range changes {
		e := pools.AuditEntry{Time: a.server.Now(), Who: byToken(r), Action: "change node", Result: "done"}
		switch {
		case c.New == nil:
			e.Action, e.Node = "remove node", c.Old.Name
		case c.Old == nil:
			e.Action, e.Node = "add node", c.New.Name
		default:
			e.Node = c.New.Name
		}
		if c.New != nil {
			for _, m := range c.New.MACs {
				a.server.Unknowns.Forget(m)
			}
		}
		a.server.Log.Info("audit", "action", e.Action, "node", e.Node, "who", e.Who)
		entries = append(entries, e)
	}
	if err := a.server.Audit.Add(entries...); err != nil {
		a.server.Log.Error("audit not stored", "err", err)
	}
	writeJSON(w, http.StatusOK, map[string]int{"changed": len(changes)})
	return nil
}

func (a *api) listChassis(w http.ResponseWriter, _ *http.Request) error {
	writeJSON(w, http.StatusOK, a.server.Hardware.Chassis())
	return nil
}

func (a *api) syncChassis(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	if err := a.server.Hardware.Sync(name); err != nil {
		return err
	}
	a.server.Log.Info("chassis is asked", "chassis", name, "who", byToken(r))
	w.WriteHeader(http.StatusAccepted)
	return nil
}

func (a *api) listJobs(w http.ResponseWriter, _ *http.Request) error {
	writeJSON(w, http.StatusOK, a.server.Power.Jobs())
	return nil
}

func (a *api) getJob(w http.ResponseWriter, r *http.Request) error {
	job, ok := a.server.Power.Job(r.PathValue("id"))
	if !ok {
		return &failure{code: http.StatusNotFound, msg: fmt.Sprintf("no such power job: %q (the last few are remembered)", r.PathValue("id"))}
	}
	writeJSON(w, http.StatusOK, job)
	return nil
}

func (a *api) order(w http.ResponseWriter, r *http.Request) error {
	var order pools.PowerOrder
	if err := readJSON(r, &order); err != nil {
		return err
	}
	job, err := a.server.Power.Order(r.Context(), byToken(r), order)
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/api/v1/power/"+job.ID)
	writeJSON(w, http.StatusAccepted, job)
	return nil
}

// maxAudit bounds the answer to a list of the audit.
const maxAudit = 10_000

func (a *api) listAudit(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	if err := onlyParameters(query, "node", "limit"); err != nil {
		return err
	}
	limit := 1000
	if s := query.Get("limit"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > maxAudit {
			return badRequest("limit %q: want a number from 1 to %d", s, maxAudit)
		}
		limit = n
	}
	all, err := a.server.Audit.List(maxAudit)
	if err != nil {
		return err
	}
	out := []pools.AuditEntry{}
	for _, e := range all {
		if name := query.Get("node"); len(out) < limit && (name == "" || e.Node == name) {
			out = append(out, e)
		}
	}
	writeJSON(w, http.StatusOK, out)
	return nil
}

// switched is what is known of the power of nodes: how the last order for each
// went. Nobody is asked for it.
func switched(jobs []pools.PowerJob, now time.Time) map[string]string {
	out := map[string]string{}
	for _, job := range jobs {
		for _, n := range job.Nodes {
			if _, newer := out[n.Name]; newer {
				continue
			}
			switch {
			case n.Error != "":
				out[n.Name] = "power " + job.Action + " failed " + ago(now.Sub(n.Time)) + " ago: " + printable.Quote(n.Error, 64)
			case job.Ended.IsZero():
				out[n.Name] = "power " + job.Action + ": " + n.Step
			default:
				out[n.Name] = "was " + n.State + " " + ago(now.Sub(n.Time)) + " ago"
			}
		}
	}
	return out
}
