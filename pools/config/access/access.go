// Package access checks who may use the listener for people without a token: by the unix
// socket, with a certificate, or after a login at a provider of OpenID Connect.
//
// It does not know how clients are authenticated.
package access

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"drover/pools"
	"drover/pools/config/defaults"
)

// maxPath is shorter than the 107 bytes of the path of a socket (unix(7)): drover makes it
// under another name first.
const maxPath = 90

var group = regexp.MustCompile(`^([a-z_][a-z0-9_-]{0,31}|[0-9]{1,9})$`) // groupadd(8)

// SetDefaults sets the values that the config does not set.
func SetDefaults(s *pools.Server) {
	if k := s.Socket; k != nil {
		defaults.Set(&k.Path, pools.DefaultSocket)
		defaults.Set(&k.Role, pools.RoleViewer)
	}
	if o := s.OIDC; o != nil {
		defaults.Set(&o.GroupsClaim, "groups")
		if o.Scopes == nil {
			o.Scopes = pools.Strings{"profile", "email", "groups"}
		}
	}
}

// Restarts reports whether a server section that follows another one takes a restart.
func Restarts(before, after pools.Server) bool {
	after.Clients, after.Retire, after.Brake = before.Clients, before.Retire, before.Brake
	if a, b := after.ClientCertificates, before.ClientCertificates; a != nil && b != nil {
		after.ClientCertificates = &pools.ClientCertificates{CA: a.CA, Roles: b.Roles}
	}
	if a, b := after.APITLS, before.APITLS; a != nil && b != nil {
		same := *a
		same.Names = b.Names
		after.APITLS = &same
	}
	if a, b := after.OIDC, before.OIDC; a != nil && b != nil {
		same := *a
		same.Roles = b.Roles
		after.OIDC = &same
	}
	return !reflect.DeepEqual(before, after)
}

// Check calls fail for each mistake.
func Check(s *pools.Server, fail func(path, hint, format string, args ...any)) {
	if s.APITLS != nil {
		certificate(s.APITLS, fail)
	}
	if s.Socket != nil {
		socket(s.Socket, fail)
	}
	if s.ClientCertificates != nil {
		certificates(s, fail)
	}
	if s.OIDC != nil {
		provider(s, fail)
	}
}

// hostName is a DNS name.
var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$`)

func certificate(t *pools.APITLS, fail func(path, hint, format string, args ...any)) {
	const at = "server.apiTLS"
	switch {
	case t.SelfSigned && (t.Cert != "" || t.Key != ""):
		fail(at, "remove selfSigned, or cert and key", "%s has files of a certificate, and shall be selfSigned too", at)
	case !t.SelfSigned && (t.Cert == "" || t.Key == ""):
		fail(at, "apiTLS: {cert: api.crt, key: api.key}, or apiTLS: {selfSigned: true}, and drover issues it", "%s needs both cert and key", at)
	case !t.SelfSigned && len(t.Names) > 0:
		fail(at+".names", "issue the certificate for these names, and remove names", "%s.names is for selfSigned certificates: files have their names", at)
	}
	for i, name := range t.Names {
		if _, err := netip.ParseAddr(name); err != nil && (len(name) > maxName || !hostName.MatchString(name)) {
			fail(fmt.Sprintf("%s.names[%d]", at, i), "names: [drover.example.org, 192.0.2.7]", "%s.names: %q is neither a DNS name nor an address", at, name)
		}
	}
}

func socket(k *pools.Socket, fail func(path, hint, format string, args ...any)) {
	switch {
	case !filepath.IsAbs(k.Path) || filepath.Clean(k.Path) != k.Path:
		fail("server.socket.path", "path: "+pools.DefaultSocket, "server.socket: %q is not an absolute path", k.Path)
	case len(k.Path) > maxPath:
		fail("server.socket.path", "path: "+pools.DefaultSocket, "server.socket: the path has more than %d bytes", maxPath)
	}
	switch {
	case k.Group == "":
		fail("server.socket", "group: drover-users, whose members may connect", "server.socket has no group")
	case !group.MatchString(k.Group):
		fail("server.socket.group", "group: drover-users", "server.socket: %q is not the name or number of a group", k.Group)
	}
	if !slices.Contains(pools.Roles(), k.Role) {
		fail("server.socket.role", fmt.Sprintf("role: viewer; there are %q", pools.Roles()), "server.socket: unknown role %q", k.Role)
	}
}

// maxName bounds a name in bytes: that of a DNS name.
const maxName = 253

func certificates(s *pools.Server, fail func(path, hint, format string, args ...any)) {
	const at = "server.clientCertificates"
	c := s.ClientCertificates
	if s.APITLS == nil {
		fail(at, "apiTLS: {cert: api.crt, key: api.key}", "%s has no effect without server.apiTLS", at)
	}
	if c.CA == "" {
		fail(at, "ca: people-ca.crt", "%s has no ca", at)
	}
	roles(at, "alice@example.org", c.Roles, fail)
}

// roles checks the roles of names. example is such a name.
func roles(at, example string, all []pools.Grant, fail func(path, hint, format string, args ...any)) {
	if len(all) == 0 {
		fail(at, fmt.Sprintf("roles: [{name: %s, role: admin}]", example), "%s has no roles", at)
	}
	for i, g := range all {
		path := fmt.Sprintf("%s.roles[%d]", at, i)
		switch {
		case g.Name == "" || len(g.Name) > maxName || strings.ContainsFunc(g.Name, unicode.IsControl):
			fail(path, "name: "+example, "%s: %q cannot be a name", at, g.Name)
		case slices.ContainsFunc(all[:i], func(o pools.Grant) bool { return o.Name == g.Name }):
			fail(path, "remove one", "%s: %q is there twice", at, g.Name)
		}
		switch {
		case !slices.Contains(pools.Roles(), g.Role):
			fail(path, fmt.Sprintf("role: viewer; there are %q", pools.Roles()), "%s: %q has the unknown role %q", at, g.Name, g.Role)
		case g.Pools != nil && len(g.Pools) == 0:
			fail(path, "leave pools out for all pools", "%s: the pools of %q are empty", at, g.Name)
		case len(g.Pools) > 0 && g.Role != pools.RoleOperator:
			fail(path, "leave the pools out, or write role: operator", "%s: the role %s of %q is not limited to pools", at, g.Role, g.Name)
		}
	}
}
