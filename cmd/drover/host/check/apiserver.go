package check

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"drover/cmd/drover/cli"
	"drover/kube/cluster"
)

const (
	maxSkew   = 30 * time.Second // of the clock
	soon      = 7 * 24 * time.Hour
	maxAnswer = 1 << 20 // bytes
)

// apiServer checks the API server, the clock, and the credentials. It reports whether the
// cluster can be asked.
func (h *Host) apiServer(ctx context.Context) bool {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(h.Facts.CA) {
		h.Add("credentials", cli.Fault, h.Dir+"/ca.crt has no certificate", h.anew())
		return false
	}
	server, err := url.Parse(h.Facts.Server)
	if err != nil || server.Scheme != "https" || server.Host == "" {
		h.Add("api", cli.Fault, fmt.Sprintf("%s/host.json: %q is not the URL of an API server", h.Dir, h.Facts.Server), h.anew())
		return false
	}
	var expired error
	conf := &tls.Config{
		ServerName: server.Hostname(), MinVersion: tls.VersionTLS12,
		// The chain is checked here, at a time when its certificate is valid: the clock
		// of this host may be wrong, and the server says what time it is.
		InsecureSkipVerify: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			leaf := s.PeerCertificates[0]
			now := h.Now()
			if now.Before(leaf.NotBefore) || now.After(leaf.NotAfter) {
				expired = fmt.Errorf("the certificate of the API server is valid from %s to %s", leaf.NotBefore.UTC().Format(time.DateTime), leaf.NotAfter.UTC().Format(time.DateTime))
				now = leaf.NotBefore.Add(time.Second)
			}
			opts := x509.VerifyOptions{Roots: roots, DNSName: server.Hostname(), CurrentTime: now, Intermediates: x509.NewCertPool()}
			for _, c := range s.PeerCertificates[1:] {
				opts.Intermediates.AddCert(c)
			}
			_, err := leaf.Verify(opts)
			return err
		},
	}
	transport := &http.Transport{TLSClientConfig: conf, DisableKeepAlives: true}
	client := &http.Client{Transport: transport, Timeout: 2 * h.Timeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	// Without the token, which nobody gets whose time is not known to be right.
	resp, err := get(ctx, client, h.Facts.Server+"/version", "")
	if err != nil {
		h.Add("api", cli.Fault, fmt.Sprintf("%s does not answer: %v", h.Facts.Server, err), h.unreachable(err))
		return false
	}
	h.Add("api", cli.OK, h.Facts.Server+" answers", "")
	if !h.clock(resp.date, expired) {
		return false
	}
	return h.credentials(ctx, client)
}

// answer is what counts of an answer of the API server.
type answer struct {
	code   int
	status string // 403 Forbidden
	date   string
}

// get makes a request, and reads its answer away.
func get(ctx context.Context, client *http.Client, url, token string) (a answer, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return a, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := client.Do(req)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, maxAnswer))
	return answer{resp.StatusCode, resp.Status, resp.Header.Get("Date")}, err
}

// unreachable returns the remedy for an API server that does not answer.
func (h *Host) unreachable(err error) string {
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	switch {
	case errors.As(err, &unknown):
		return "the cluster has other CAs than the bundle, or another server answers at that address: " + h.anew()
	case errors.As(err, &name):
		return "clusters[].endpoint of drover's config must be a name or address in the certificate of the API server; then " + h.anew()
	case isRefused(err):
		return "the API server does not run there; clusters[].endpoint of drover's config says where hosts and nodes find it"
	}
	return "open its port between this host and the API server, and see ip route get and the DNS of this host"
}

func (h *Host) anew() string {
	return "drover host bundle " + h.Facts.Name + " on the server, and install it anew"
}

// clock compares the clock with that of the API server.
func (h *Host) clock(date string, expired error) bool {
	at, err := http.ParseTime(date)
	off := h.Now().Sub(at)
	switch {
	case err != nil:
		h.Add("clock", cli.Skipped, "the API server does not say what time it is", "")
	case off > maxSkew || off < -maxSkew:
		direction := "fast"
		if off < 0 {
			direction = "slow"
		}
		h.Add("clock", cli.Fault, fmt.Sprintf("the clock is %s %s, by that of the API server: certificates and tokens end early or late", off.Abs().Round(time.Second), direction),
			"timedatectl set-ntp true, or chronyd")
	default:
		h.Add("clock", cli.OK, "it is that of the API server", "")
	}
	if expired != nil {
		h.Add("api", cli.Fault, expired.Error(), "set the clock, or renew the certificate of the API server")
	}
	return expired == nil
}

// credentials tries the token of the host.
func (h *Host) credentials(ctx context.Context, client *http.Client) bool {
	end := cluster.TokenExpiry(h.Facts.Token)
	resp, err := get(ctx, client, h.Facts.Server+"/api/v1/nodes/"+url.PathEscape(h.Facts.Name), h.Facts.Token)
	switch {
	case err != nil:
		h.Add("api", cli.Fault, fmt.Sprintf("%s does not answer: %v", h.Facts.Server, err), h.unreachable(err))
		return false
	case resp.code == http.StatusUnauthorized && !end.IsZero() && end.Before(h.Now()):
		h.Add("credentials", cli.Fault, "they expired at "+end.UTC().Format(time.DateTime), h.anew()+"; journalctl -u drover-host-renew-"+h.Facts.Cluster+" says why they were not renewed")
		return false
	case resp.code == http.StatusUnauthorized:
		h.Add("credentials", cli.Fault, "the cluster does not accept them: the host was removed, or the cluster has new keys", h.anew())
		return false
	case resp.code == http.StatusForbidden:
		h.Add("rights", cli.Fault, "the cluster gives hosts no rights", "drover cluster prepare "+h.Facts.Cluster+" --admin FILE, on the server")
		return false
	case resp.code != http.StatusOK && resp.code != http.StatusNotFound:
		h.Add("api", cli.Fault, h.Facts.Server+" answers "+resp.status, "see the log of the API server")
		return false
	case !end.IsZero() && end.Before(h.Now().Add(soon)):
		h.Add("credentials", cli.Warning, "they end at "+end.UTC().Format(time.DateTime), "systemctl start drover-host-renew-"+h.Facts.Cluster+", whose timer does it each day")
	default:
		h.Add("credentials", cli.OK, "the cluster accepts them", "")
	}
	return true
}
