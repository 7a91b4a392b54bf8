package web

import (
	"net/http"
	"slices"
	"strings"

	"drover/pools"
	"drover/web/answer"
	"drover/web/api"
	"drover/web/auth"
)

// healthPath is the path of the check that the process answers.
const healthPath = "/healthz"

func healthz(w http.ResponseWriter, _ *http.Request) error {
	answer.JSON(w, http.StatusOK, map[string]bool{"ok": true})
	return nil
}

// readyz answers with the problems, and with 503 if one is more than a warning. Clients
// without the token or a session see them without names and addresses.
func readyz(a *api.API, guard *auth.Guard) answer.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		problems := a.Ready(r.Context())
		ready, code := !slices.ContainsFunc(problems, func(p api.Problem) bool { return !p.Warning }), http.StatusOK
		if !ready {
			code = http.StatusServiceUnavailable
		}
		hint := ""
		if c, ok := guard.Client(r); len(problems) > 0 && (!ok || !c.Role.Includes(pools.RoleViewer)) {
			problems, hint = brief(problems), "send the API token to see names and causes"
		}
		answer.JSON(w, code, struct {
			Ready    bool          `json:"ready"`
			Problems []api.Problem `json:"problems,omitempty"`
			Hint     string        `json:"hint,omitempty"`
		}{ready, problems, hint})
		return nil
	}
}

// brief returns problems as clients without the token see them: each kind once, so that
// not even their number shows how many tenants there are.
func brief(problems []api.Problem) (out []api.Problem) {
	for _, p := range problems {
		kind, _, _ := strings.Cut(p.Part, " ")
		b := api.Problem{Part: kind, Problem: p.Brief, Warning: p.Warning}
		if b.Problem == "" {
			b.Problem = "not ready"
		}
		if !slices.Contains(out, b) {
			out = append(out, b)
		}
	}
	return out
}
