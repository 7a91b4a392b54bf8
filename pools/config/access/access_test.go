package access_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"drover/pools"
	"drover/pools/config/access"
)

// check returns the mistakes of a server section as lines, and fails the test for one that has no
// remedy or is nowhere.
func check(t *testing.T, s *pools.Server) string {
	t.Helper()
	var b strings.Builder
	access.Check(s, func(path, hint, format string, args ...any) {
		if hint == "" || !strings.HasPrefix(path, "server.") {
			t.Errorf("%s: %q: the remedy is %q", path, format, hint)
		}
		fmt.Fprintf(&b, "%s: %s\n", path, fmt.Sprintf(format, args...))
	})
	return b.String()
}

// good is a section with all that the package checks, written as short as it may be.
func good() *pools.Server {
	s := &pools.Server{
		APITLS:             &pools.APITLS{SelfSigned: true, Names: []string{"drover.example.org", "192.0.2.7", "fd00::7"}},
		Socket:             &pools.Socket{Group: "drover-users"},
		ClientCertificates: &pools.ClientCertificates{CA: "ca.crt", Roles: []pools.Grant{{Name: "alice", Role: pools.RoleOperator, Pools: []string{"web"}}}},
		OIDC: &pools.OIDC{
			Issuer: "https://login.example.org/realms/a", URL: "https://drover.example.org:8443", ClientID: "drover",
			Roles: []pools.Grant{{Name: "admins", Role: pools.RoleAdmin}},
		},
	}
	access.SetDefaults(s)
	return s
}

func TestDefaults(t *testing.T) {
	s := good()
	if got := check(t, s); got != "" {
		t.Error(got)
	}
	if s.Socket.Path != pools.DefaultSocket || s.Socket.Role != pools.RoleViewer { // the least that is of use
		t.Errorf("got %+v", s.Socket)
	}
	if got := strings.Join(s.OIDC.Scopes, " ") + " " + s.OIDC.GroupsClaim; got != "profile email groups groups" {
		t.Errorf("got %q", got)
	}
	s.OIDC.Scopes = pools.Strings{}
	if access.SetDefaults(s); len(s.OIDC.Scopes) != 0 {
		t.Errorf("no scopes at all are a choice: got %q", s.OIDC.Scopes)
	}
	empty := &pools.Server{}
	if access.SetDefaults(empty); empty.Socket != nil || empty.OIDC != nil || check(t, empty) != "" {
		t.Errorf("a section without access has got some: %+v", empty)
	}
}

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		edit func(*pools.Server)
		want string
	}{
		{func(s *pools.Server) { s.APITLS.Cert = "api.crt" }, "server.apiTLS: server.apiTLS has files of a certificate, and shall be selfSigned too"},
		{func(s *pools.Server) { s.APITLS = &pools.APITLS{Key: "api.key"} }, "server.apiTLS: server.apiTLS needs both cert and key"},
		{func(s *pools.Server) { s.APITLS = &pools.APITLS{Cert: "a", Key: "b", Names: []string{"a"}} }, "server.apiTLS.names: server.apiTLS.names is for selfSigned"},
		{func(s *pools.Server) { s.APITLS.Names[1] = "a_b" }, `server.apiTLS.names[1]: server.apiTLS.names: "a_b" is neither`},
		{func(s *pools.Server) { s.APITLS.Names[0] = "*.example.org" }, "server.apiTLS.names[0]"},
		{func(s *pools.Server) { s.Socket.Path = "run/drover.sock" }, "server.socket.path"},
		{func(s *pools.Server) { s.Socket.Path = "/run/../drover.sock" }, "server.socket.path"},
		{func(s *pools.Server) { s.Socket.Path = "/" + strings.Repeat("x", 90) }, "server.socket.path: server.socket: the path has more than 90 bytes"},
		{func(s *pools.Server) { s.Socket.Group = "" }, "server.socket: server.socket has no group"},
		{func(s *pools.Server) { s.Socket.Group = "a b" }, "server.socket.group"},
		{func(s *pools.Server) { s.Socket.Role = "root" }, `server.socket.role: server.socket: unknown role "root"`},
		{func(s *pools.Server) { s.APITLS = nil }, "server.clientCertificates: server.clientCertificates has no effect"},
		{func(s *pools.Server) { s.ClientCertificates.CA = "" }, "server.clientCertificates: server.clientCertificates has no ca"},
		{func(s *pools.Server) { s.ClientCertificates.Roles = nil }, "server.clientCertificates: server.clientCertificates has no roles"},
		{func(s *pools.Server) { s.OIDC.Roles = append(s.OIDC.Roles, s.OIDC.Roles[0]) }, `server.oidc.roles[1]: server.oidc: "admins" is there twice`},
		{func(s *pools.Server) { s.OIDC.Roles[0].Name = "" }, `server.oidc.roles[0]: server.oidc: "" cannot be a name`},
		{func(s *pools.Server) { s.OIDC.Roles[0].Name = "a\x00b" }, "server.oidc.roles[0]"},
		{func(s *pools.Server) { s.OIDC.Roles[0].Role = "" }, "server.oidc.roles[0]"},
		{func(s *pools.Server) { s.OIDC.Roles[0].Pools = []string{"web"} }, "server.oidc.roles[0]: server.oidc: the role admin of \"admins\" is not limited"},
		{func(s *pools.Server) { s.ClientCertificates.Roles[0].Pools = []string{} }, "server.clientCertificates.roles[0]: server.clientCertificates: the pools of \"alice\" are empty"}, // not all
		{func(s *pools.Server) { s.OIDC.ClientID = "" }, "server.oidc.clientID"},
		{func(s *pools.Server) { s.OIDC.ClientSecret.FromFile = "../secret" }, "server.oidc.clientSecret"},
		{func(s *pools.Server) { s.OIDC.Scopes = pools.Strings{"two words"} }, "server.oidc.scopes"},
		{func(s *pools.Server) { s.OIDC.NameClaim = "a\tb" }, "server.oidc.nameClaim"},
		{func(s *pools.Server) { s.OIDC.GroupsClaim = strings.Repeat("x", 254) }, "server.oidc.groupsClaim"},
		{func(s *pools.Server) { s.OIDC.Issuer = "https://a:secret@login.example.org" }, `server.oidc.issuer: server.oidc: the issuer "https://a:xxxxx@login.example.org" has more than a host`},
	} {
		s := good()
		tt.edit(s)
		if got := check(t, s); !strings.HasPrefix(got, tt.want) || strings.Count(got, "\n") != 1 || strings.Contains(got, "secret@") {
			t.Errorf("got\n%swant the one mistake\n%s", got, tt.want)
		}
	}
}

// TestAddress: codes and tokens cross no network in clear, and the provider leads back to no other
// page than the one that is named.
func TestAddress(t *testing.T) {
	for _, tt := range []struct {
		text        string
		issuer, url bool // it is good for
	}{
		{"https://a.example.org", true, true}, {"https://[fd00::1]:8443", true, true}, {"https://a.example.org/realm", true, false},
		{"http://localhost:8443", true, true}, {"http://127.0.0.7", true, true}, {"http://[::1]:1", true, true},
		{"http://a.example.org", false, false}, {"http://localhost.example.org", false, false}, {"http://192.0.2.1", false, false},
		{"", false, false}, {"a.example.org", false, false}, {"ftp://a", false, false}, {"https:a", false, false}, {"https://", false, false},
		{"https://a?x=1", false, false}, {"https://a?", false, false}, {"https://a#x", false, false}, {"https://a#", false, false},
		{"https://u@a", false, false}, {"https://a b", false, false}, {"https://a/ b", false, false}, {"https://a\n", false, false},
	} {
		s := good()
		s.OIDC.Issuer = tt.text
		if got := check(t, s); (got == "") != tt.issuer {
			t.Errorf("issuer %q: got %q", tt.text, got)
		}
		s = good()
		s.OIDC.URL = tt.text
		if got := check(t, s); (got == "") != tt.url {
			t.Errorf("url %q: got %q", tt.text, got)
		}
	}
}

// TestRestarts: roles, names and clients change in a server that runs; all else takes a restart,
// also what begins or ends.
func TestRestarts(t *testing.T) {
	for _, tt := range []struct {
		edit func(*pools.Server)
		want bool
	}{
		{func(*pools.Server) {}, false},
		{func(s *pools.Server) { s.Brake.Nodes = new(9) }, false},
		{func(s *pools.Server) { s.Clients = append(s.Clients, netip.MustParsePrefix("10.0.0.0/8")) }, false},
		{func(s *pools.Server) { s.OIDC.Roles = nil }, false},
		{func(s *pools.Server) { s.ClientCertificates.Roles = nil }, false},
		{func(s *pools.Server) { s.APITLS.Names = nil }, false},
		{func(s *pools.Server) { s.OIDC.ClientID = "x" }, true},
		{func(s *pools.Server) { s.OIDC = nil }, true},
		{func(s *pools.Server) { s.ClientCertificates.CA = "x" }, true},
		{func(s *pools.Server) { s.ClientCertificates = nil }, true},
		{func(s *pools.Server) { s.APITLS.SelfSigned = false }, true},
		{func(s *pools.Server) { s.APITLS = nil }, true},
		{func(s *pools.Server) { s.Socket.Role = pools.RoleAdmin }, true},
	} {
		after := good()
		tt.edit(after)
		if there, back := access.Restarts(*good(), *after), access.Restarts(*after, *good()); there != tt.want || back != tt.want {
			t.Errorf("%+v: got %t, and %t back; want %t", after, there, back, tt.want)
		}
	}
}
