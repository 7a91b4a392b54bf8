package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"drover/pools"
	"drover/web/answer"
	"drover/web/api/authz"
	"drover/web/auth"
	"drover/web/listing"
	"drover/web/route"
)

// Hardware is the chassis of the config.
type Hardware interface {
	// Chassis returns the status of all chassis, by name.
	Chassis() []pools.ChassisStatus
	// Sync starts a reading of a chassis, and does not wait for it. It returns
	// [pools.ErrNoChassis] when there is no chassis of that name.
	Sync(name string) error
	// Places returns where nodes are in these chassis, see [authz.Places].
	Places(nodes []pools.NodeInfo) []pools.ChassisSlot
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

// record adds an action on a node to the audit and the log. A failure is logged only.
func (a *API) record(by auth.Client, action, node string, changes ...pools.AuditChange) {
	a.recordAll([]pools.AuditEntry{a.entry(by, action, node, changes...)})
}

// entry returns the entry of the audit for an action on a node.
func (a *API) entry(by auth.Client, action, node string, changes ...pools.AuditChange) pools.AuditEntry {
	return pools.AuditEntry{Time: a.Now(), Actor: by.String(), Action: action, Node: node, Result: "done", Changes: changes}
}

// recordAll is [API.record] for several actions, which wait for the disk once.
func (a *API) recordAll(entries []pools.AuditEntry) {
	for _, e := range entries {
		a.Log.Info("audit", "action", e.Action, "node", e.Node, "who", e.Actor)
	}
	if len(entries) == 0 {
		return
	}
	if err := a.Audit.Add(entries...); err != nil {
		a.Log.Error("audit not stored", "err", err)
	}
}

func (a *API) hardwareRoutes() []route.Route {
	return []route.Route{
		{
			Method: "GET", Path: "/api/v1/chassis", Summary: "The chassis of the config, each with the result of its last reading", Role: pools.RoleViewer,
			Query: chassisList.Parameters(), Status: 200, Answer: []pools.ChassisStatus{}, Handle: a.listChassis,
		},
		{
			Method: "POST", Path: "/api/v1/chassis/{name}/sync", Summary: "Read a chassis now; the list says when it is done", Role: pools.RoleOperator,
			Status: 202, Errors: noSuch, Handle: a.syncChassis,
		},
		{
			Method: "GET", Path: powerPath, Summary: "The last power jobs", Role: pools.RoleViewer,
			Query: jobList.Parameters(), Status: 200, Answer: []pools.PowerJob{}, Handle: a.listJobs,
		},
		{
			Method: "POST", Path: powerPath, Summary: "Switch machines", Role: pools.RoleOperator,
			Body: pools.PowerRequest{}, Status: 202, Answer: pools.PowerJob{}, Errors: noSuch, Handle: a.startPower,
		},
		{
			Method: "GET", Path: powerPath + "/{id}", Summary: "A power job", Role: pools.RoleViewer,
			Status: 200, Answer: pools.PowerJob{}, Errors: noSuch, Handle: a.getJob,
		},
		{
			Method: "GET", Path: "/api/v1/audit", Summary: "What clients have done, the newest first", Role: pools.RoleViewer,
			Query: auditList.Parameters(), Status: 200, Answer: []pools.AuditEntry{}, Handle: a.listAudit,
		},
	}
}

const powerPath = "/api/v1/power"

var chassisList = listing.List[pools.ChassisStatus]{Max: 1000, Columns: []listing.Column[pools.ChassisStatus]{
	{Name: "name", Of: func(c *pools.ChassisStatus) string { return c.Name }},
	{Name: "pool", Of: func(c *pools.ChassisStatus) string { return c.Pool }},
	{Name: "last", Of: func(c *pools.ChassisStatus) string { return listing.Time(c.Last) }, SortOnly: true},
}}

var jobList = listing.List[pools.PowerJob]{Max: 1000, Newest: true, Columns: []listing.Column[pools.PowerJob]{
	{Name: "started", Of: func(j *pools.PowerJob) string { return listing.Time(j.Started) }, SortOnly: true},
	{Name: "action", Of: func(j *pools.PowerJob) string { return j.Action }},
	{Name: "who", Of: func(j *pools.PowerJob) string { return j.Actor }},
}}

var auditList = listing.List[pools.AuditEntry]{Max: pools.MaxAudit, Newest: true, Columns: []listing.Column[pools.AuditEntry]{
	{Name: "time", Of: func(e *pools.AuditEntry) string { return listing.Time(e.Time) }, SortOnly: true},
	{Name: "node", Of: func(e *pools.AuditEntry) string { return e.Node }},
	{Name: "action", Of: func(e *pools.AuditEntry) string { return e.Action }},
	{Name: "job", Of: func(e *pools.AuditEntry) string { return e.Job }},
	{Name: "result", Of: func(e *pools.AuditEntry) string { return e.Result }},
}}

func (a *API) listChassis(w http.ResponseWriter, r *http.Request) error {
	return chassisList.Answer(w, r, a.ChassisOf(client(r)))
}

func (a *API) syncChassis(w http.ResponseWriter, r *http.Request) error {
	read := a.Sync
	if route.IsDryRun(r) {
		read = a.CheckSync
	}
	if err := read(r.PathValue("name"), client(r)); err != nil {
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

// Sync starts a reading of a chassis for a client.
func (a *API) Sync(name string, by auth.Client) error {
	if err := a.CheckSync(name, by); err != nil {
		return err
	}
	if err := a.Hardware.Sync(name); err != nil {
		return err
	}
	a.record(by, "read chassis "+name, "")
	return nil
}

// CheckSync returns an error if there is no such chassis, or if the client must not have it
// read.
func (a *API) CheckSync(name string, by auth.Client) error {
	all := a.Hardware.Chassis()
	i := slices.IndexFunc(all, func(c pools.ChassisStatus) bool { return c.Name == name })
	if i < 0 {
		return fmt.Errorf("%w %q", pools.ErrNoChassis, name)
	}
	return by.May(all[i].Pool)
}

func (a *API) listJobs(w http.ResponseWriter, r *http.Request) error {
	return jobList.Answer(w, r, a.JobsOf(client(r)))
}

func (a *API) getJob(w http.ResponseWriter, r *http.Request) error {
	job, ok := a.Power.Job(r.PathValue("id"))
	if ok {
		job, ok = a.jobOf(client(r), job)
	}
	if !ok {
		return answer.NotFound("no such power job: %q (the last few are remembered)", r.PathValue("id"))
	}
	answer.JSON(w, http.StatusOK, job)
	return nil
}

func (a *API) startPower(w http.ResponseWriter, r *http.Request) error {
	var req pools.PowerRequest
	if err := readJSON(r, &req); err != nil {
		return err
	}
	if route.IsDryRun(r) {
		job, err := a.PreviewPower(client(r), req)
		if err == nil {
			answer.JSON(w, http.StatusOK, job)
		}
		return err
	}
	job, err := a.SwitchPower(r.Context(), client(r), req)
	if err != nil {
		return err
	}
	w.Header().Set("Location", powerPath+"/"+job.ID)
	answer.JSON(w, http.StatusAccepted, job)
	return nil
}

// PreviewPower returns the job that [API.SwitchPower] would start.
func (a *API) PreviewPower(by auth.Client, req pools.PowerRequest) (pools.PowerJob, error) {
	job, err := a.Power.Preview(req)
	if err == nil {
		err = authz.Switch(by, a.Farm.Farm(), a.Hardware.Places, job.Nodes)
	}
	return job, err
}

// SwitchPower starts a power job for a client.
func (a *API) SwitchPower(ctx context.Context, by auth.Client, req pools.PowerRequest) (pools.PowerJob, error) {
	if by.Limited() {
		job, err := a.PreviewPower(by, req)
		if err != nil {
			return job, err
		}
		if len(job.Nodes) == 0 {
			return job, fmt.Errorf("%w: it names no node", pools.ErrPowerRequest)
		}
		req.Pool, req.Chassis, req.Tag, req.Nodes = "", "", "", nil
		for _, n := range job.Nodes { // those that were checked
			req.Nodes = append(req.Nodes, n.Name)
		}
	}
	return a.Power.Switch(ctx, by.String(), req)
}

// usualAudit is the number of entries that a list without sort, limit and cursor has.
const usualAudit = 1000

func (a *API) listAudit(w http.ResponseWriter, r *http.Request) error {
	all, err := a.AuditOf(client(r))
	if err != nil {
		return err
	}
	if query := r.URL.Query(); !listing.Paged(query) {
		all = auditList.Filter(query, slices.Clone(all))
		all = all[:min(len(all), usualAudit)]
	}
	return auditList.Answer(w, r, slices.Clone(all))
}
