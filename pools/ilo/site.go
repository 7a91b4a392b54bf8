package ilo

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"time"
)

// Site is how to get at a management processor over HTTPS: that of a chassis, or
// an iLO. Its methods may be called concurrently.
type Site struct {
	Address  string // host or host:port; or a URL, for plain HTTP on loopback
	User     string // empty: no login is sent
	Password Secret

	TLSPin  string    // sha256:..., of the certificate; empty: as TLSPins has it
	TLSPins *CertPins // pins at first use; nil: the certificate must be one that this host trusts

	// Legacy takes TLS 1.0 and RSA key exchange, which is all that old
	// firmware has.
	Legacy bool

	Timeouts Timeouts

	client *http.Client
	base   *url.URL
}

// Open checks the address and makes the client.
func (s *Site) Open() error {
	s.Timeouts = s.Timeouts.withDefaults()
	text := s.Address
	if !bytes.Contains([]byte(text), []byte("://")) {
		text = "https://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.RawQuery != "" || u.Path != "" && u.Path != "/" {
		return fmt.Errorf("%q is no address: want host, host:port or https://host:port", s.Address)
	}
	if ip, err := netip.ParseAddr(u.Hostname()); u.Scheme == "http" && s.User != "" && (err != nil || !ip.IsLoopback()) {
		return fmt.Errorf("%s: plain HTTP would show the password to the network: use https", s.Address)
	}
	u.Path = ""
	s.base = u
	s.client = &http.Client{
		Transport: &http.Transport{ // no proxy: a password goes to nobody else
			DialContext:         (&net.Dialer{Timeout: s.Timeouts.Dial}).DialContext,
			TLSClientConfig:     s.tls(),
			TLSHandshakeTimeout: s.Timeouts.Handshake,
			MaxIdleConnsPerHost: 1,
			IdleConnTimeout:     30 * time.Second,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return nil
}

// Close lets go of the connections.
func (s *Site) Close() error {
	s.client.CloseIdleConnections()
	return nil
}

func (s *Site) tls() *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.Legacy {
		c.MinVersion = tls.VersionTLS10
		for _, suite := range append(tls.CipherSuites(), tls.InsecureCipherSuites()...) {
			c.CipherSuites = append(c.CipherSuites, suite.ID)
		}
	}
	if s.TLSPin == "" && s.TLSPins == nil {
		return c
	}
	// A management processor has a certificate of its own making. It is known
	// by that certificate, which the pin checks.
	c.InsecureSkipVerify = true
	c.VerifyConnection = func(state tls.ConnectionState) error {
		return s.checkCert(s.base.Host, state)
	}
	return c
}

// errMissing is an answer 404: firmware does not have it.
var errMissing = errors.New("not there")

// Bounds of a request.
const (
	maxRedirects = 4
	busyTries    = 3
	maxRetry     = 10 * time.Second // that is waited when a processor says Retry-After
)

// call does one request; out may be nil.
func (s *Site) call(ctx context.Context, method, path string, in, out any) error {
	data, err := s.fetch(ctx, method, path, in)
	if err != nil || out == nil {
		return err
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("%w: %s: the answer to %s %s: %w", ErrUnreadable, s.Address, method, path, err)
	}
	return nil
}

// fetch does one request and returns the body. A processor that is busy is asked
// again; one that refuses the login is not.
func (s *Site) fetch(ctx context.Context, method, path string, in any) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeouts.Command)
	defer cancel()
	for busy, moved := 1, 0; ; {
		a, err := s.once(ctx, method, path, in)
		if err != nil {
			return nil, err
		}
		switch {
		case a.code < 300:
			return a.body, nil
		case a.code < 400 && moved < maxRedirects:
			// iLO redirects to the same path with a slash behind it, and wants
			// the same method there (RFC 9110, 15.4.9).
			moved++
			if path, err = s.redirected(a, path); err != nil {
				return nil, err
			}
			continue
		case a.code == http.StatusServiceUnavailable && busy < busyTries:
			busy++
			if err := s.waitBusy(ctx, a); err != nil {
				return nil, err
			}
			continue
		}
		return nil, s.status(a, method, path)
	}
}

// answer is what came back.
type answer struct {
	code   int
	status string // "404 Not Found"
	header http.Header
	body   []byte
	from   *url.URL
}

// once sends a request and reads the answer.
func (s *Site) once(ctx context.Context, method, path string, in any) (answer, error) {
	var body io.Reader = http.NoBody
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return answer{}, err
		}
		body = bytes.NewReader(b)
	}
	ref, err := url.Parse(path)
	if err != nil {
		return answer{}, fmt.Errorf("%w: %s: %q is no link", ErrUnreadable, s.Address, path)
	}
	target := s.base.ResolveReference(ref)
	if target.Host != s.base.Host || target.Scheme != s.base.Scheme {
		return answer{}, fmt.Errorf("%w: %s: a link leads elsewhere, to %s", ErrUnreadable, s.Address, target.Host)
	}
	req, err := http.NewRequestWithContext(ctx, method, target.String(), body)
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Accept", "application/json, text/xml")
	req.Header.Set("OData-Version", "4.0") // iLO 4 hides the older spelling of names then
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if s.User != "" {
		req.SetBasicAuth(s.User, string(s.Password))
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return answer{}, s.unreachable(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxText+1))
	switch {
	case err != nil:
		return answer{}, s.unreachable(err)
	case len(data) > maxText:
		return answer{}, fmt.Errorf("%w: %s: more than %d bytes at %s", ErrUnreadable, s.Address, maxText, path)
	}
	return answer{resp.StatusCode, resp.Status, resp.Header, data, target}, nil
}

func (s *Site) unreachable(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // without the URL, which says nothing more
	}
	if errors.Is(err, ErrHostKey) || errors.Is(err, errPins) {
		return err
	}
	if e, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return fmt.Errorf("%w: %s: %w (pin the certificate: --tls-pin sha256:..., or tlsPin in the config)", ErrHostKey, s.Address, e.Err)
	}
	return fmt.Errorf("%w: %s: %w", ErrUnreachable, s.Address, err)
}

// redirected is the path that an answer sends to. It stays on the host: the
// request has the password in it.
func (s *Site) redirected(a answer, path string) (string, error) {
	to, err := a.from.Parse(a.header.Get("Location"))
	if err != nil || to.Host != s.base.Host || to.Scheme != s.base.Scheme {
		return "", fmt.Errorf("%w: %s redirects %s to another host", ErrUnreadable, s.Address, path)
	}
	return to.RequestURI(), nil
}

// waitBusy waits as long as the answer says.
func (s *Site) waitBusy(ctx context.Context, a answer) error {
	wait := s.Timeouts.Backoff
	if n, err := strconv.Atoi(a.header.Get("Retry-After")); err == nil && n >= 0 {
		wait = min(time.Duration(n)*time.Second, maxRetry)
	}
	if !sleep(ctx, wait) {
		return s.unreachable(ctx.Err())
	}
	return nil
}

// status is the error for an answer that is none.
func (s *Site) status(a answer, method, path string) error {
	what := fmt.Sprintf("%s: %s %s: %s", s.Address, method, path, a.status)
	if m := message(a.body); m != "" {
		what += " (" + m + ")"
	}
	switch a.code {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("%w: %s", ErrRefused, what)
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return fmt.Errorf("%w: %w: %s", ErrUnreadable, errMissing, what)
	case http.StatusBadRequest:
		return fmt.Errorf("%w: %s", ErrUnreadable, what)
	}
	return fmt.Errorf("%w: %s", ErrUnreachable, what)
}

// message is the first message ID of an error, as both the old REST and Redfish
// have it.
func message(data []byte) string {
	var t tree
	if json.Unmarshal(data, &t.v) != nil {
		return ""
	}
	id := cmp.Or(
		t.get("Messages").at(0).get("MessageID").text(),
		t.get("error", "@Message.ExtendedInfo").at(0).get("MessageId").text(),
	)
	return clip(id)
}
