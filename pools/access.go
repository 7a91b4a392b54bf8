package pools

import (
	"errors"
	"slices"
	"time"
)

// Role is what a client of the REST API, the page and the metrics may do.
type Role string

// The roles. Each may do what those before it may.
const (
	RoleMetrics  Role = "metrics"  // read /metrics
	RoleViewer   Role = "viewer"   // read everything except secrets
	RoleOperator Role = "operator" // change and switch nodes, of some pools or of all
	RoleAdmin    Role = "admin"    // everything: also secrets, the config and tokens
)

// Roles returns all roles, the least first.
func Roles() []Role { return []Role{RoleMetrics, RoleViewer, RoleOperator, RoleAdmin} }

// Includes reports whether r may do what needs the role other.
func (r Role) Includes(other Role) bool {
	return slices.Contains(Roles(), r) && slices.Index(Roles(), r) >= slices.Index(Roles(), other)
}

// APIToken is a named token of the REST API, without its secret.
type APIToken struct {
	Name    string    `json:"name"`
	Role    Role      `json:"role"`
	Pools   []string  `json:"pools,omitempty"` // of an operator: the pools whose nodes it may change; empty: all
	Created time.Time `json:"created"`
	By      string    `json:"by"`               // as in [AuditEntry]
	Expires time.Time `json:"expires,omitzero"` // zero: never
}

// APITokenRequest asks for a new [APIToken].
type APITokenRequest struct {
	Name  string   `json:"name"`
	Role  Role     `json:"role"`
	Pools []string `json:"pools,omitempty"`
	TTL   Duration `json:"ttl,omitempty"` // time until it expires; default: never
}

// NewAPIToken is a new [APIToken] with its secret, which only its first answer has.
type NewAPIToken struct {
	APIToken
	Token string `json:"token"` // secret
}

// The errors of requests about tokens of the API. Test with errors.Is.
var (
	ErrTokenExists = errors.New("a token of that name exists")
	ErrNoToken     = errors.New("no such token")
)
