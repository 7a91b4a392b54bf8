package redfish

import (
	"bytes"
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
	"slices"
	"strconv"
	"strings"
	"time"

	"drover/hardware/bmc"
	"drover/internal/printable"
	"drover/internal/wait"
)

// Client is an HTTPS client of a management processor: that of a chassis, or an iLO. It
// is safe for concurrent use.
type Client struct {
	bmc.Login

	client  *http.Client
	base    *url.URL
	session *session
}

// Open returns a client. It checks the address, and does not connect. Plain HTTP
// with a login is refused unless the address is of loopback.
func Open(l bmc.Login) (*Client, error) {
	s := &Client{Login: l, session: &session{}}
	s.Timeouts = s.Timeouts.WithDefaults()
	text := s.Address
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.RawQuery != "" || u.Path != "" && u.Path != "/" {
		return nil, fmt.Errorf("%q is no address: want host, host:port or https://host:port", s.Address)
	}
	if ip, err := netip.ParseAddr(u.Hostname()); u.Scheme == "http" && s.User != "" && (err != nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("%s: plain HTTP would show the password to the network: use https", s.Address)
	}
	u.Path = ""
	s.base = u
	s.client = &http.Client{
		Transport: &http.Transport{ // no proxy: the password is for the processor only
			DialContext:         (&net.Dialer{Timeout: s.Timeouts.Dial}).DialContext,
			TLSClientConfig:     s.tls(),
			TLSHandshakeTimeout: s.Timeouts.Handshake,
			MaxIdleConnsPerHost: 1,
			IdleConnTimeout:     30 * time.Second,

			MaxResponseHeaderBytes: maxHeader,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return s, nil
}

// Close ends the session and closes the connections.
func (s *Client) Close() {
	s.logout()
	s.client.CloseIdleConnections()
}

func (s *Client) tls() *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.Legacy {
		c.MinVersion = tls.VersionTLS10
		for _, suite := range append(tls.CipherSuites(), tls.InsecureCipherSuites()...) {
			c.CipherSuites = append(c.CipherSuites, suite.ID)
		}
	}
	if s.TLSPin == "" && s.Certs == nil {
		return c
	}
	// A management processor has a self-signed certificate, which the pin checks.
	c.InsecureSkipVerify = true
	c.VerifyConnection = func(state tls.ConnectionState) error {
		return s.checkCert(s.base.Host, state)
	}
	return c
}

// errMissing is an answer 404 or 405: the firmware does not have the document.
var errMissing = errors.New("not there")

// errUncertain is an answer 500 to a command.
var errUncertain = errors.New("it may be done or not")

// Bounds of a request and its answer, in addition to [bmc.MaxAnswer].
const (
	maxRedirects = 4
	busyTries    = 3
	maxRetry     = 10 * time.Second // bounds Retry-After
	maxLink      = 1 << 10          // bytes of a path or a link
	maxHeader    = 64 << 10         // bytes of the header fields of an answer
)

// Get returns the document at a path of the processor. Errors wrap those of package bmc.
func (s *Client) Get(ctx context.Context, path string) (t Tree, err error) {
	return t, s.call(ctx, http.MethodGet, path, nil, &t)
}

// call sends a request with the JSON of in, and decodes the answer into out. Both may be
// nil.
func (s *Client) call(ctx context.Context, method, path string, in, out any) error {
	data, err := s.fetch(ctx, method, path, in)
	if err != nil || out == nil {
		return err
	}
	if err := decode(data, out); err != nil {
		return fmt.Errorf("%w: %s: the answer to %s %s: %w", bmc.ErrUnreadable, s.Address, method, path, err)
	}
	return nil
}

// fetch sends a request and returns the body of the answer.
func (s *Client) fetch(ctx context.Context, method, path string, in any) ([]byte, error) {
	a, err := s.exchange(ctx, message{method: method, path: path, in: in})
	if err == nil && a.code >= 300 {
		err = s.status(a, method, path)
	}
	return a.body, err
}

// message is a request.
type message struct {
	method, path string
	in           any    // sent as JSON, unless it is nil
	ifMatch      string // the entity tag that the resource must have; empty: any
	anonymous    bool   // without the login
	token        string // of a session, in an anonymous request
}

// answer is a response with its body.
type answer struct {
	code   int
	status string // "404 Not Found"
	header http.Header
	body   []byte
	from   *url.URL // of the request
	token  string   // of the request
}

// exchange sends a request and returns the answer, whatever its status is. It repeats the request when
// the processor is busy, once when a session has ended, and never when it refuses the login.
func (s *Client) exchange(ctx context.Context, m message) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeouts.Command)
	defer cancel()
	for busy, moved, renewed := 1, 0, false; ; {
		a, err := s.once(ctx, m)
		if err != nil {
			return answer{}, err
		}
		switch {
		case a.code >= 300 && a.code < 400 && moved < maxRedirects:
			// iLO redirects to the same path with a slash at its end, and expects
			// the same method (RFC 9110, 15.4.9).
			moved++
			if m.path, err = s.redirected(a, m.path); err != nil {
				return answer{}, err
			}
		case (a.code == http.StatusServiceUnavailable || a.code == http.StatusTooManyRequests) && busy < busyTries:
			busy++
			if err := wait.Sleep(ctx, s.retryAfter(a)); err != nil {
				return answer{}, s.unreachable(err)
			}
		case a.code == http.StatusUnauthorized && a.token != "" && !m.anonymous && !renewed:
			renewed = true
			s.expired(a.token)
		case a.code == http.StatusUnauthorized && a.token == "" && !m.anonymous && !renewed && s.anyway(ctx):
			renewed = true
		default:
			return a, nil
		}
	}
}

// target returns the URL of a path or a link of the processor.
func (s *Client) target(link string) (*url.URL, error) {
	if len(link) > maxLink {
		return nil, fmt.Errorf("%w: %s: a link of %d bytes, more than %d", bmc.ErrUnreadable, s.Address, len(link), maxLink)
	}
	ref, err := url.Parse(link)
	if err != nil || strings.ContainsFunc(link, func(r rune) bool { return r < ' ' || r > '~' }) {
		return nil, fmt.Errorf("%w: %s: %q is no link", bmc.ErrUnreadable, s.Address, link)
	}
	to := s.base.ResolveReference(ref)
	if to.Host != s.base.Host || to.Scheme != s.base.Scheme {
		return nil, fmt.Errorf("%w: %s: a link leads elsewhere, to %s", bmc.ErrUnreadable, s.Address, to.Host)
	}
	return to, nil
}

// request returns the HTTP request of m and the token of the session in it.
func (s *Client) request(ctx context.Context, m message) (req *http.Request, token string, err error) {
	var body io.Reader = http.NoBody
	if m.in != nil {
		b, err := json.Marshal(m.in)
		if err != nil {
			return nil, "", err
		}
		body = bytes.NewReader(b)
	}
	to, err := s.target(m.path)
	if err != nil {
		return nil, "", err
	}
	if req, err = http.NewRequestWithContext(ctx, m.method, to.String(), body); err != nil {
		return nil, "", err
	}
	req.Header.Set("Accept", "application/json, text/xml")
	req.Header.Set("Accept-Encoding", "identity") // a compressed answer could be of any size
	req.Header.Set("OData-Version", "4.0")        // makes iLO 4 omit the older names of fields
	if m.in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if m.ifMatch != "" {
		req.Header.Set("If-Match", m.ifMatch)
	}
	switch {
	case !m.anonymous:
		token, err = s.authorize(ctx, req)
	case m.token != "":
		req.Header.Set("X-Auth-Token", m.token)
	}
	return req, token, err
}

// once sends a request and reads the answer.
func (s *Client) once(ctx context.Context, m message) (answer, error) {
	req, token, err := s.request(ctx, m)
	if err != nil {
		return answer{}, err
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return answer{}, s.unreachable(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, bmc.MaxAnswer+1))
	switch {
	case err != nil:
		return answer{}, s.unreachable(err)
	case len(data) > bmc.MaxAnswer:
		return answer{}, fmt.Errorf("%w: %s: more than %d bytes at %s", bmc.ErrUnreadable, s.Address, bmc.MaxAnswer, m.path)
	case !slices.Contains([]string{"", "identity"}, strings.ToLower(resp.Header.Get("Content-Encoding"))):
		return answer{}, fmt.Errorf("%w: %s: a compressed answer at %s, which was not asked for", bmc.ErrUnreadable, s.Address, m.path)
	}
	return answer{resp.StatusCode, printable.Line(resp.Status, maxShown), resp.Header, data, req.URL, token}, nil
}

func (s *Client) unreachable(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // without the URL, which adds nothing to the address
	}
	if errors.Is(err, bmc.ErrHostKey) || errors.Is(err, bmc.ErrPins) {
		return err
	}
	if e, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return fmt.Errorf("%w: %s: %w (pin the certificate: --tls-pin sha256:..., or tlsPin in the config)", bmc.ErrHostKey, s.Address, e.Err)
	}
	return fmt.Errorf("%w: %s: %w", bmc.ErrUnreachable, s.Address, err)
}

// redirected returns the path of a redirection. Another host is an error, because the
// request contains the password.
func (s *Client) redirected(a answer, path string) (string, error) {
	to, err := a.from.Parse(a.header.Get("Location"))
	if err != nil || to.Host != s.base.Host || to.Scheme != s.base.Scheme {
		return "", fmt.Errorf("%w: %s redirects %s to another host", bmc.ErrUnreadable, s.Address, path)
	}
	return to.RequestURI(), nil
}

// retryAfter returns the delay before a request to a busy processor is repeated.
func (s *Client) retryAfter(a answer) time.Duration {
	if n, err := strconv.Atoi(a.header.Get("Retry-After")); err == nil && n >= 0 {
		return min(time.Duration(n)*time.Second, maxRetry)
	}
	return s.Timeouts.Backoff
}

// maxShown bounds text of a processor in an error, in bytes.
const maxShown = 80
