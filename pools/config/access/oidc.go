package access

import (
	"errors"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"drover/pools"
	"drover/pools/config/settings"
)

// scope is a scope of OAuth 2.0 (RFC 6749, section 3.3).
var scope = regexp.MustCompile(`^[\x21\x23-\x5b\x5d-\x7e]{1,253}$`)

// provider checks the login at a provider of OpenID Connect.
func provider(s *pools.Server, fail func(path, hint, format string, args ...any)) {
	const at = "server.oidc"
	o := s.OIDC
	if why := address(o.Issuer, true); why != "" {
		fail(at+".issuer", "issuer: https://login.example.org, as the provider's tokens have it", "%s: the issuer %q %s", at, redacted(o.Issuer), why)
	}
	if why := address(o.URL, false); why != "" {
		fail(at+".url", "url: https://drover.example.org:8443, as browsers open the page", "%s: the url %q %s", at, redacted(o.URL), why)
	}
	if o.ClientID == "" || len(o.ClientID) > maxName || strings.ContainsFunc(o.ClientID, unicode.IsControl) {
		fail(at+".clientID", "clientID: drover, as the provider knows it", "%s: %q cannot be the ID of a client", at, o.ClientID)
	}
	if h, ok := errors.AsType[*pools.HintError](settings.CheckReference(o.ClientSecret)); ok {
		fail(at+".clientSecret", "clientSecret: {fromFile: oidc.secret}", "%s.clientSecret: %s", at, h.Msg)
	}
	for _, name := range o.Scopes {
		if !scope.MatchString(name) {
			fail(at+".scopes", "scopes: [profile, email, groups]", "%s: %q is not a scope", at, name)
		}
	}
	for _, claim := range []struct{ field, name string }{{"nameClaim", o.NameClaim}, {"groupsClaim", o.GroupsClaim}} {
		if len(claim.name) > maxName || strings.ContainsFunc(claim.name, unicode.IsControl) {
			fail(at+"."+claim.field, "groupsClaim: groups", "%s.%s: %q cannot be the name of a claim", at, claim.field, claim.name)
		}
	}
	roles(at, "farm-admins", o.Roles, fail)
}

// address returns why a text is not the URL of a server of HTTPS, or of HTTP on this host.
func address(text string, mayHavePath bool) string {
	u, err := url.Parse(text)
	switch {
	case text == "":
		return "is not set"
	case err != nil || u.Host == "" || u.Opaque != "" || strings.ContainsFunc(text, unicode.IsSpace) || !slices.Contains([]string{"http", "https"}, u.Scheme):
		return "is not a URL of HTTPS"
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.HasSuffix(text, "#"):
		return "has more than a host and a path"
	case !mayHavePath && u.Path != "":
		return "has a path"
	case u.Scheme == "http" && !isLoopback(u.Hostname()):
		return "is of HTTP: codes and tokens would cross the network in clear"
	}
	return ""
}

// redacted returns a URL without the password in it.
func redacted(text string) string {
	if u, err := url.Parse(text); err == nil {
		return u.Redacted()
	}
	return "…"
}

func isLoopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}
