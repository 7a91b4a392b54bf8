package auth

import (
	"crypto/x509"
	"net/http"
	"slices"

	"drover/pools"
	"drover/web/answer"
)

// certified returns the client of a request with a certificate that TLS has verified and that
// a grant names. Of several grants the one with the highest role counts. A request with a
// token has that of the token, or none.
func (g *Guard) certified(r *http.Request) (c Client, ok bool) {
	p, ok := g.holderOf(r)
	if !ok || r.Header.Get("Authorization") != "" {
		return c, false
	}
	return g.of(r, &p)
}

// holderOf returns the person of the certificate that TLS has verified.
func (g *Guard) holderOf(r *http.Request) (p person, ok bool) {
	if g.Grants == nil || r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return p, false
	}
	c := r.TLS.VerifiedChains[0][0]
	if !g.inForce(r.TLS.VerifiedChains) {
		return p, false
	}
	best, ok := granted(g.Grants(), namesOf(c))
	return person{kind: ByCertificate, name: best.Name, names: namesOf(c), end: c.NotAfter}, ok
}

// inForce reports whether a chain of certificates is in force now. TLS has checked that when
// the connection began, which can be long ago.
func (g *Guard) inForce(chains [][]*x509.Certificate) bool {
	now := g.now()
	over := func(c *x509.Certificate) bool { return now.After(c.NotAfter) }
	return slices.ContainsFunc(chains, func(chain []*x509.Certificate) bool { return !slices.ContainsFunc(chain, over) })
}

// Certified returns the client that a browser can log in as with its certificate.
func (g *Guard) Certified(r *http.Request) (Client, bool) {
	c, ok := g.certified(r)
	return c, ok && c.Role.Includes(pools.RoleViewer)
}

// LoginCertified starts a session for a browser with a certificate. It ends with the
// certificate.
func (g *Guard) LoginCertified(w http.ResponseWriter, r *http.Request) (Client, error) {
	c, ok := g.Certified(r)
	if !ok {
		return c, &answer.Error{Code: http.StatusForbidden, Msg: "There is no certificate with a role here that may see the page."}
	}
	p, _ := g.holderOf(r)
	g.begin(w, session{of: c.Principal(), person: &p})
	return c, nil
}

// granted returns what the grants of these names give together: the highest role, and for that
// the pools of all that give it.
func granted(grants []pools.Grant, names []string) (best pools.Grant, ok bool) {
	for _, g := range grants {
		switch {
		case !slices.Contains(names, g.Name):
		case !ok || !best.Role.Includes(g.Role):
			best, ok = g, true
		case best.Role == g.Role && len(best.Pools) > 0 && len(g.Pools) > 0:
			best.Pools = slices.Concat(best.Pools, g.Pools)
		case best.Role == g.Role:
			best.Pools = nil
		}
	}
	return best, ok
}

// namesOf returns the names of the subject of a certificate.
func namesOf(c *x509.Certificate) (names []string) {
	names = slices.Concat(c.DNSNames, c.EmailAddresses)
	for _, u := range c.URIs {
		names = append(names, u.String())
	}
	if c.Subject.CommonName != "" {
		names = append(names, c.Subject.CommonName)
	}
	return names
}
