package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"drover/pools"
	"drover/web/answer"
)

// Hardware is the chassis of the config.
type Hardware interface {
	// Chassis returns the status of all chassis, by name.
	Chassis() []pools.ChassisStatus
	// Sync starts a reading of a chassis, and does not wait for it. It returns
	// [pools.ErrNoChassis] when there is no chassis of that name.
	Sync(name string) error
}

// Power switches machines.
type Power interface {
	// Switch starts a job for a client, and returns it. Its errors for a bad request
	// are [pools.ErrPowerRequest] and [pools.ErrNotFound].
	Switch(ctx context.Context, actor string, req pools.PowerRequest) (pools.PowerJob, error)
	// Preview returns the job that Switch would start, with the same errors.
	Preview(req pools.PowerRequest) (pools.PowerJob, error)
	// Jobs returns the last jobs, the newest first.
	Jobs() []pools.PowerJob
	// Job returns one of the last jobs; false when there is none with that ID.
	Job(id string) (pools.PowerJob, bool)
}

// Audit stores the actions of clients.
type Audit interface {
	Add(entries ...pools.AuditEntry) error
	// List returns the newest entries, the newest first, limit at most.
	List(limit int) ([]pools.AuditEntry, error)
}

// byToken returns the name of a client with the API token, for the audit.
func byToken(r *http.Request) string { return "token from " + r.RemoteAddr }

// record adds an action on a node to the audit and the log. A failure is logged only.
func (a *API) record(actor, action, node string) {
	a.Log.Info("audit", "action", action, "node", node, "who", actor)
	if err := a.Audit.Add(pools.AuditEntry{Time: a.Now(), Actor: actor, Action: action, Node: node, Result: "done"}); err != nil {
		a.Log.Error("audit not stored", "err", err)
	}
}

// changeNodes makes changes of several nodes in one step: all of them or none.
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
	if dryRun(r) {
		if err := a.Nodes.CheckNodes(changes); err != nil {
			return err
		}
		answer.JSON(w, http.StatusOK, map[string]int{"changed": len(changes)})
		return nil
	}
	if err := a.Nodes.ChangeNodes(changes); err != nil {
		return err
	}
	a.recordChanges(byToken(r), changes)
	answer.JSON(w, http.StatusOK, map[string]int{"changed": len(changes)})
	return nil
}

// recordChanges adds changes of nodes to the audit and the log, and removes the MACs of the
// nodes from the unknown machines.
func (a *API) recordChanges(actor string, changes []pools.NodeChange) {
	var entries []pools.AuditEntry
	for _, c := range changes {
		e := pools.AuditEntry{Time: a.Now(), Actor: actor, Action: "change node", Result: "done"}
		switch {
		case c.New == nil:
			e.Action, e.Node = "remove node", c.Old.Name
		case c.Old == nil:
			e.Action, e.Node = "add node", c.New.Name
		case c.Old.Name != c.New.Name:
			e.Action, e.Node = "rename node "+c.Old.Name, c.New.Name
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
}

func (a *API) listChassis(w http.ResponseWriter, _ *http.Request) error {
	answer.JSON(w, http.StatusOK, a.Hardware.Chassis())
	return nil
}

func (a *API) syncChassis(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	if dryRun(r) {
		if !slices.ContainsFunc(a.Hardware.Chassis(), func(c pools.ChassisStatus) bool { return c.Name == name }) {
			return fmt.Errorf("%w %q", pools.ErrNoChassis, name)
		}
		w.WriteHeader(http.StatusAccepted)
		return nil
	}
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

func (a *API) startPower(w http.ResponseWriter, r *http.Request) error {
	var req pools.PowerRequest
	if err := readJSON(r, &req); err != nil {
		return err
	}
	if dryRun(r) {
		job, err := a.Power.Preview(req)
		if err == nil {
			answer.JSON(w, http.StatusOK, job)
		}
		return err
	}
	job, err := a.Power.Switch(r.Context(), byToken(r), req)
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
	limit, err := limitOf(query, 1000, maxAudit)
	if err != nil {
		return err
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
