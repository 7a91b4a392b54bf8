package web

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"drover/web/answer"
)

// checkHost returns a handler that refuses requests to names that are not this
// server's. With DNS rebinding, a page of another site can give its own name the address
// of this server, and its scripts then read answers as if they were of that site; the
// browser still sends the name of that site as Host.
//
// Load balancers send all kinds of Host with a health check, so /healthz has no limit.
func (s *Server) checkHost(next http.Handler) http.Handler {
	return answer.With(s.API.Log, func(w http.ResponseWriter, r *http.Request) error {
		if host := hostname(r.Host); r.URL.Path != healthPath && !s.isHost(host, r) &&
			!slices.ContainsFunc(s.certificates(), func(c *x509.Certificate) bool { return c.VerifyHostname(host) == nil }) {
			return &answer.Error{Code: http.StatusMisdirectedRequest, Msg: fmt.Sprintf(
				"%q is not a name of this server: use its address, or a name in the certificate of server.apiTLS; a reverse proxy must send one of these as Host", host)}
		}
		next.ServeHTTP(w, r)
		return nil
	})
}

// isHost reports whether host is localhost, a loopback address, the address that the
// client has connected to, or one of Hosts. Clients of HTTP/1.0 send none, and browsers
// always send one.
func (s *Server) isHost(host string, r *http.Request) bool {
	if host == "" || host == "localhost" || slices.Contains(s.Hosts, host) {
		return true
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	addr = addr.Unmap().WithZone("")
	local, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return addr.IsLoopback() || local != nil && addr == local.AddrPort().Addr().Unmap().WithZone("")
}

// certificates returns the certificates of TLS that are in force, without those that do not
// parse: clients refuse them.
func (s *Server) certificates() (all []*x509.Certificate) {
	if s.TLS == nil {
		return nil
	}
	pairs := slices.Clip(s.TLS.Certificates)
	if get := s.TLS.GetCertificate; get != nil {
		if pair, err := get(&tls.ClientHelloInfo{}); err == nil {
			pairs = append(pairs, *pair)
		}
	}
	for _, c := range pairs {
		if leaf, err := x509.ParseCertificate(c.Certificate[0]); err == nil {
			all = append(all, leaf)
		}
	}
	return all
}

// hostname returns the host of a Host header in lower case, without its port and the
// brackets of IPv6.
func hostname(host string) string {
	return strings.ToLower(strings.TrimSuffix((&url.URL{Host: host}).Hostname(), "."))
}
