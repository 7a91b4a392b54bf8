package snapshot

import (
	"strings"

	"drover/internal/printable"
	"drover/web/api"
)

// Health is what is wrong with a cluster.
type Health struct {
	Failing bool     // nodes cannot join it, or its API server does not answer
	Texts   []string // errors first
}

// ClusterHealth returns what is wrong with clusters, by their names. A warning is no failure:
// credentials that end soon are good still.
func ClusterHealth(problems []api.Problem) map[string]Health {
	all := map[string]Health{}
	for _, warnings := range []bool{false, true} {
		for _, problem := range problems {
			name, ok := strings.CutPrefix(problem.Part, "cluster ")
			if !ok || problem.Warning != warnings {
				continue
			}
			h := all[name]
			h.Failing = h.Failing || !problem.Warning
			h.Texts = append(h.Texts, printable.Line(problem.Problem, 2*maxText))
			all[name] = h
		}
	}
	return all
}
