// Package client is the node's client of drover's node-facing listener, for one boot:
// [Server] sends events, and requests the config and the join, sealed to the key of the
// boot.
//
// It does not know what is in the answers.
package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hpke"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"drover/internal/printable"
	"drover/node/retry"
	"drover/pools"
	"drover/pools/boots"
)

// Server is a client of the node-facing listener, for one boot of one node.
type Server struct {
	Base   *url.URL   // without a slash at its end
	Secure *url.URL   // the HTTPS listener for config, join and events; nil: Base
	Also   []*url.URL // like Base, of servers that go on with the boot; their HTTPS listener has the port of Secure
	MAC    pools.MAC
	Nonce  string // secret
	BootID string // of this kernel; only the agent sends it
	Client *http.Client

	at       atomic.Int32           // the server that is asked: 0 is Base, 1 the first of Also
	eventKey atomic.Pointer[[]byte] // signs events; nil before the config arrives
}

// SignEvents makes the server sign its events from now on. A server without a secret sends no
// key for them.
func (s *Server) SignEvents(key []byte) {
	if len(key) > 0 {
		s.eventKey.Store(&key)
	}
}

// MaxAnswer is the maximum size of an answer, in bytes. The files of a config count.
const MaxAnswer = 16 << 20

// URL returns the URL of a path.
func (s *Server) URL(path string) string { return s.Base.String() + path }

// URLs returns the URLs of a path at all servers but the first, which [Server.URL] has.
func (s *Server) URLs(path string) (all []string) {
	for _, u := range s.Also {
		all = append(all, u.String()+path)
	}
	return all
}

// nodeURL returns the URL of this node's config, join or events at a server.
func (s *Server) nodeURL(at int32, what string) string {
	base := s.Base
	if at > 0 {
		base = s.Also[at-1]
	}
	switch {
	case s.Secure != nil && at > 0:
		secure := *s.Secure
		secure.Host = net.JoinHostPort(base.Hostname(), cmp.Or(s.Secure.Port(), "443"))
		base = &secure
	case s.Secure != nil:
		base = s.Secure
	}
	return base.String() + pools.NodePath + s.MAC.Dashed() + "/" + what
}

// post sends in as JSON to /node/{mac}/{what} and returns the answer's body. It asks one server
// after another until one answers, and stays with that one. A refusal counts if all refuse:
// a server that is away may know better.
func (s *Server) post(ctx context.Context, what string, in any) (answer []byte, err error) {
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false) // an escape has six bytes, and pools.MaxEventBody is small
	if err := enc.Encode(in); err != nil {
		return nil, retry.Final{Err: err}
	}
	for range 1 + len(s.Also) {
		at := s.at.Load()
		answer, tried := s.postTo(ctx, at, what, body.Bytes())
		if tried == nil || !another(tried) {
			return answer, tried
		}
		if _, refused := errors.AsType[Refused](err); err == nil || refused {
			err = tried
		}
		s.at.CompareAndSwap(at, (at+1)%int32(1+len(s.Also)))
		if ctx.Err() != nil {
			break
		}
	}
	return nil, err
}

// another reports whether another server may do what one did not: not if that asked for patience.
func another(err error) bool {
	_, busy := errors.AsType[retry.Busy](err)
	_, final := errors.AsType[retry.Final](err)
	return !busy && !final
}

// postTo sends a body to one server.
func (s *Server) postTo(ctx context.Context, at int32, what string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.nodeURL(at, what), bytes.NewReader(body))
	if err != nil {
		return nil, retry.Final{Err: err}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(pools.NonceHeader, s.Nonce)
	if key := s.eventKey.Load(); key != nil && what == "events" {
		req.Header.Set(pools.SignatureHeader, pools.SignEvent(*key, body))
	}
	resp, err := s.Client.Do(req)
	if err != nil {
		return nil, WithoutURL(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return nil, StatusError(resp)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, MaxAnswer+1))
	if err != nil {
		return nil, err
	}
	if len(b) > MaxAnswer {
		return nil, fmt.Errorf("server's answer has more than %d bytes", MaxAnswer)
	}
	return b, nil
}

// SendEvent sends one event of the boot.
func (s *Server) SendEvent(ctx context.Context, e boots.Event) error {
	_, err := s.post(ctx, "events", e)
	return err
}

// SendInventory sends the hardware of the machine.
func (s *Server) SendInventory(ctx context.Context, v pools.Inventory) error {
	_, err := s.post(ctx, "inventory", v)
	return err
}

// Ask requests the node's "config" or "join" and decodes it into out. The server seals
// the answer to key. The limit is for one try: a join waits for the cluster.
func (s *Server) Ask(ctx context.Context, what string, key hpke.PrivateKey, limit time.Duration, out any) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	sealed, err := s.post(ctx, what, pools.KeyRequest{PublicKey: key.PublicKey().Bytes(), BootID: s.BootID})
	if err != nil {
		return err
	}
	plain, err := pools.Open(key, s.MAC, what, sealed)
	if err != nil {
		return errors.New("the answer is not sealed to this boot's key")
	}
	// The error of a JSON decoder may quote a secret.
	if err := json.Unmarshal(plain, out); err != nil {
		return fmt.Errorf("the answer of %d bytes is not a %T", len(plain), out)
	}
	return nil
}

// WithoutURL returns the error of an HTTP client without the URL, which is long and
// known.
func WithoutURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// StatusError returns the error of an answer other than success: a [retry.Busy] if the
// server sent Retry-After.
func StatusError(resp *http.Response) error {
	// The text of the server says more than its status code.
	b, _ := io.ReadAll(io.LimitReader(resp.Body, 512))
	text, _, _ := strings.Cut(strings.TrimSpace(string(b)), "\n")
	err := fmt.Errorf("server answers %s", resp.Status)
	if text != "" && !strings.HasPrefix(text, "<") {
		err = fmt.Errorf("%w: %s", err, printable.Text(text))
	}
	switch resp.StatusCode {
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		place, _ := strconv.Atoi(resp.Header.Get(pools.PlaceHeader)) // 0: in no queue
		if resp.StatusCode == http.StatusTooManyRequests {
			err = TooMany{err}
		}
		return retry.Busy{Err: err, After: retryAfter(resp.Header.Get("Retry-After"), time.Now()), Place: max(place, 0)}
	case http.StatusForbidden:
		return Refused{err}
	}
	return err
}

// Refused is a 403: the nonce or the key is not the current one of this boot.
type Refused struct{ Err error }

func (e Refused) Error() string { return e.Err.Error() }

func (e Refused) Unwrap() error { return e.Err }

// TooMany is a 429. For an event it is the limit of its boot, which a later try meets again.
type TooMany struct{ Err error }

func (e TooMany) Error() string { return e.Err.Error() }

func (e TooMany) Unwrap() error { return e.Err }

// retryAfter reads both forms of the header (RFC 9110, section 10.2.3).
func retryAfter(s string, now time.Time) time.Duration {
	if n, err := strconv.Atoi(s); err == nil {
		return time.Duration(min(max(n, 0), int(retry.MaxAfter/time.Second))) * time.Second
	}
	if t, err := http.ParseTime(s); err == nil {
		return min(max(t.Sub(now), 0), retry.MaxAfter)
	}
	return 0
}

// pinned returns a TLS config that accepts only the key with this SHA-256 of its
// SubjectPublicKeyInfo; nil without a pin. Nothing else in a certificate is checked: in
// its initramfs a node has no certificate authorities and, often, not the time.
func pinned(pin []byte) *tls.Config {
	if len(pin) == 0 {
		return nil
	}
	return &tls.Config{
		InsecureSkipVerify: true, // VerifyConnection verifies, also when a session is resumed
		MinVersion:         tls.VersionTLS13,
		VerifyConnection: func(c tls.ConnectionState) error {
			if got := sha256.Sum256(c.PeerCertificates[0].RawSubjectPublicKeyInfo); !bytes.Equal(got[:], pin) {
				return fmt.Errorf("the server that answers has a key of sha256:%x, not that of drover.pin: it is not our server, or its key was changed during this boot", got)
			}
			return nil
		},
	}
}

// NewHTTP returns the client for the node's one server. It uses no proxy, no
// compression, and follows no redirect, which would send the nonce elsewhere. By TLS it
// accepts the pinned key only.
func NewHTTP(pin []byte) *http.Client {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 10 * time.Second}
	return &http.Client{
		Transport: &http.Transport{
			DialContext:         dialer.DialContext,
			TLSHandshakeTimeout: 10 * time.Second,
			TLSClientConfig:     pinned(pin),
			DisableCompression:  true,
			MaxIdleConns:        4,
			IdleConnTimeout:     30 * time.Second,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
