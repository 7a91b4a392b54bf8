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
	// ErrNotStored is the error of a change that is in effect, but not on disk yet.
	ErrNotStored = errors.New("not on disk yet")
	ErrNoToken   = errors.New("no such token")
)

// Socket is a unix socket with the REST API, the page and the metrics. The mode is 0660.
type Socket struct {
	Path  string `json:"path,omitempty"` // absolute; default "/run/drover/drover.sock"
	Group string `json:"group"`          // whose members may connect, by name or number
	Role  Role   `json:"role,omitempty"` // of everyone who connects; default viewer
}

// DefaultSocket is the default path of a [Socket], where commands look for it.
const DefaultSocket = "/run/drover/drover.sock"

// ClientCertificates are the clients of the REST API that are known by a certificate.
type ClientCertificates struct {
	CA    string  `json:"ca"`    // PEM file with the authorities that sign them, relative to the config file
	Roles []Grant `json:"roles"` // a change takes effect without a restart
}

// OIDC is a provider of OpenID Connect (OpenID Connect Core 1.0) where people log in to the
// page: the authorization code flow with PKCE (RFC 7636).
type OIDC struct {
	Issuer       string    `json:"issuer"`                // URL, as the provider's tokens have it
	CA           string    `json:"ca,omitempty"`          // PEM file with the authorities of the issuer's certificate, relative to the config file; default: those of the host
	ClientID     string    `json:"clientID"`              // that the provider knows drover by
	ClientSecret Reference `json:"clientSecret,omitzero"` // of the client; default: none, for a public client
	URL          string    `json:"url"`                   // of the page in browsers: https://drover.example.org:8443. The provider leads back to /login/callback there
	Scopes       Strings   `json:"scopes,omitempty"`      // beside openid; default profile, email and groups
	NameClaim    string    `json:"nameClaim,omitempty"`   // of the ID token: the person's name in the audit; default: the verified email, else preferred_username
	GroupsClaim  string    `json:"groupsClaim,omitempty"` // of the ID token: the person's groups; default groups
	Roles        []Grant   `json:"roles"`                 // of groups; a change takes effect without a restart
}

// Grant gives a role to a name.
type Grant struct {
	Name  string   `json:"name"` // of a certificate: its common name, or one of its DNS names, mail addresses and URIs; of OIDC: a group
	Role  Role     `json:"role"`
	Pools []string `json:"pools,omitempty"` // of an operator: the pools whose nodes it may change; default: all
}
