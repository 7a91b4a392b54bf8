package api

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"drover/pools"
	"drover/web/answer"
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
	// Order begins to switch machines for a client, and returns the job. It
	// refuses with [pools.ErrPowerRequest] or [pools.ErrNotFound].
	Order(ctx context.Context, who string, o pools.PowerRequest) (pools.PowerJob, error)
	// Jobs are the orders that are remembered, the newest first.
	Jobs() []pools.PowerJob
	// Job is one of them; false when it is not remembered.
	Job(id string) (pools.PowerJob, bool)
}

// Audit keeps the actions of clients.
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
func (noHardware) Order(context.Context, string, pools.PowerRequest) (pools.PowerJob, error) {
	return pools.PowerJob{}, fmt.Errorf("%w: this server switches nothing", pools.ErrPowerRequest)
}
func (noHardware) Add(...pools.AuditEntry) error        { return nil }
func (noHardware) List(int) ([]pools.AuditEntry, error) { return []pools.AuditEntry{}, nil }

// byToken names a client with the API token in the audit.
func byToken(r *http.Request) string { return "token from " + r.RemoteAddr }

// record writes an action on a node to the audit and the log. The action stands
// when that fails.
func (a *API) record(who, action, node string) {
	a.Log.Info("audit", "action", action, "node", node, "who", who)
	if err := a.Audit.Add(pools.AuditEntry{Time: a.Now(), Actor: who, Action: action, Node: node, Result: "done"}); err != nil {
		a.Log.Error("audit not stored", "err", err)
	}
}

// changeNodes makes changes of several nodes in one step.
func (a *API) changeNodes(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Changes []pools.NodeChange `json:"changes"`
	}
	if err := readJSON(r, &body); err != nil {
		return err
	}
	if body.Changes == nil {
		return answer.BadRequest(`want {"changes": [{"old": NODE, "new": NODE}]}, where a node that is new has no old, and one to be removed no new`)
	}
	changes := body.Changes
	if err := a.Nodes.ChangeNodes(changes); err != nil {
		return err
	}
	var entries []pools.AuditEntry
	for _, c := range changes {
		e := pools.AuditEntry{Time: a.Now(), Actor: byToken(r), Action: "change node", Result: "done"}
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
				a.Unknowns.Forget(m)
			}
		}
		a.Log.Info("audit", "action", e.Action, "node", e.Node, "who", e.Actor)
		entries = append(entries, e)
	}
	if err := a.Audit.Add(entries...); err != nil {
		a.Log.Error("audit not stored", "err", err)
	}
	answer.JSON(w, http.StatusOK, map[string]int{"changed": len(changes)})
	return nil
}

func (a *API) listChassis(w http.ResponseWriter, _ *http.Request) error {
	answer.JSON(w, http.StatusOK, a.Hardware.Chassis())
	return nil
}

func (a *API) syncChassis(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	if err := a.Hardware.Sync(name); err != nil {
		return err
	}
	a.Log.Info("chassis is asked", "chassis", name, "who", byToken(r))
	w.WriteHeader(http.StatusAccepted)
	return nil
}

func (a *API) listJobs(w http.ResponseWriter, _ *http.Request) error {
	answer.JSON(w, http.StatusOK, a.Power.Jobs())
	return nil
}

func (a *API) getJob(w http.ResponseWriter, r *http.Request) error {
	job, ok := a.Power.Job(r.PathValue("id"))
	if !ok {
		return &answer.Error{Code: http.StatusNotFound, Msg: fmt.Sprintf("no such power job: %q (the last few are remembered)", r.PathValue("id"))}
	}
	answer.JSON(w, http.StatusOK, job)
	return nil
}

func (a *API) order(w http.ResponseWriter, r *http.Request) error {
	var order pools.PowerRequest
	if err := readJSON(r, &order); err != nil {
		return err
	}
	job, err := a.Power.Order(r.Context(), byToken(r), order)
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/api/v1/power/"+job.ID)
	answer.JSON(w, http.StatusAccepted, job)
	return nil
}

// maxAudit bounds the answer to a list of the audit.
const maxAudit = 10_000

func (a *API) listAudit(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	if err := onlyParameters(query, "node", "limit"); err != nil {
		return err
	}
	limit := 1000
	if s := query.Get("limit"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > maxAudit {
			return answer.BadRequest("limit %q: want a number from 1 to %d", s, maxAudit)
		}
		limit = n
	}
	all, err := a.Audit.List(maxAudit)
	if err != nil {
		return err
	}
	out := []pools.AuditEntry{}
	for _, e := range all {
		if name := query.Get("node"); len(out) < limit && (name == "" || e.Node == name) {
			out = append(out, e)
		}
	}
	answer.JSON(w, http.StatusOK, out)
	return nil
}
