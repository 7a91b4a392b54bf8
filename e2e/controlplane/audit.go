package controlplane

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// auditPolicy records who did what to which resource, and no content.
const auditPolicy = `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": [{"level": "Metadata"}]}`

func (p *Cluster) auditArgs() ([]string, error) {
	if !p.cfg.Audit {
		return nil, nil
	}
	policy := filepath.Join(p.cfg.Dir, "audit-policy.json")
	return []string{"--audit-policy-file=" + policy, "--audit-log-path=" + p.auditLog()}, os.WriteFile(policy, []byte(auditPolicy), 0o600)
}

func (p *Cluster) auditLog() string { return filepath.Join(p.LogDir, "audit.log") }

// Used returns the rights that a user has used since the start, as [Rights] writes them,
// sorted. Requests by kubectl do not count, nor do those that failed. It needs
// [Config].Audit.
func (p *Cluster) Used(user string) ([]string, error) {
	f, err := os.Open(p.auditLog())
	if err != nil {
		return nil, err
	}
	defer f.Close()
	used := map[string]bool{}
	for events := json.NewDecoder(f); ; {
		var e struct {
			Verb, UserAgent string
			User            struct{ Username string }
			ObjectRef       struct{ APIGroup, Resource, Subresource string }
			ResponseStatus  struct{ Code int }
		}
		switch err := events.Decode(&e); {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF): // its last line is being written
			return slices.Sorted(maps.Keys(used)), nil
		case err != nil:
			return nil, fmt.Errorf("%s: %w", p.auditLog(), err)
		}
		ref := e.ObjectRef
		if e.User.Username != user || strings.HasPrefix(e.UserAgent, "kubectl/") || ref.Resource == "" || e.ResponseStatus.Code >= http.StatusBadRequest {
			continue
		}
		used[right(e.Verb, ref.APIGroup, ref.Resource, ref.Subresource)] = true
		if e.Verb == "patch" && e.ResponseStatus.Code == http.StatusCreated { // server-side apply needs both
			used[right("create", ref.APIGroup, ref.Resource, ref.Subresource)] = true
		}
	}
}

// Rights returns the rights of rules, sorted: "VERB GROUP/RESOURCE/SUBRESOURCE", without the
// group of the core, and the name of the object if the right is for one alone.
func Rights(rules []rbacv1.PolicyRule) []string {
	granted := map[string]bool{}
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					resource, sub, _ := strings.Cut(resource, "/")
					r := right(verb, group, resource, sub)
					if len(rule.ResourceNames) == 0 {
						granted[r] = true
					}
					for _, name := range rule.ResourceNames {
						granted[r+" "+name] = true
					}
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(granted))
}

func right(verb, group, resource, subresource string) string {
	parts := slices.DeleteFunc([]string{group, resource, subresource}, func(s string) bool { return s == "" })
	return verb + " " + strings.Join(parts, "/")
}
