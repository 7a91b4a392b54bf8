package auth

import (
	"crypto/x509"
	"net/http"
	"slices"

	"drover/pools"
)

// certified returns the client of a request with a certificate that TLS has verified and that
// a grant names. Of several grants the one with the highest role counts. A request with a
// token has that of the token, or none.
func (g *Guard) certified(r *http.Request) (c Client, ok bool) {
	if g.Grants == nil || r.TLS == nil || len(r.TLS.VerifiedChains) == 0 || r.Header.Get("Authorization") != "" {
		return c, false
	}
	names := namesOf(r.TLS.VerifiedChains[0][0])
	var best pools.Grant
	for _, grant := range g.Grants() {
		if slices.Contains(names, grant.Name) && (!ok || !best.Role.Includes(grant.Role)) {
			best, ok = grant, true
		}
	}
	return Client{Kind: ByCertificate, Name: best.Name, Role: best.Role, Pools: best.Pools, Address: r.RemoteAddr}, ok
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
