package oidc

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	openid "github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"drover/internal/printable"
	"drover/web/answer"
)

// Bounds of the provider's answers.
const (
	answerTime = 10 * time.Second
	maxAnswer  = 1 << 20         // bytes
	askAgain   = 3 * time.Second // after a wrong answer, or none
)

// discover returns the endpoints of the provider. It asks for them until it has them once.
func (p *Provider) discover(ctx context.Context) (*endpoints, error) {
	p.mu.Lock()
	found, err, tried := p.discovered, p.undiscovered, p.tried
	p.mu.Unlock()
	if found != nil {
		return found, nil
	}
	if err == nil || p.now().Sub(tried) >= askAgain {
		var all any
		all, err, _ = p.discovery.Do("", func() (any, error) {
			return p.ask(openid.ClientContext(context.WithoutCancel(ctx), p.client)) // the keys are fetched with it, too
		})
		found, _ = all.(*endpoints)
	}
	if err != nil {
		why := fmt.Errorf("discovery: %s", printable.Line(err.Error(), 300))
		return nil, &Error{Answer: &answer.Error{Code: http.StatusServiceUnavailable, Msg: "The provider " + p.Host() + " does not answer as it should."}, Why: why}
	}
	return found, nil
}

// ask asks the provider for its endpoints, and keeps the result.
func (p *Provider) ask(ctx context.Context) (*endpoints, error) {
	e, err := p.endpoints(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.discovered, p.undiscovered, p.tried = e, err, p.now()
	return e, err
}

func (p *Provider) endpoints(ctx context.Context) (*endpoints, error) {
	provider, err := openid.NewProvider(ctx, p.settings.Issuer)
	if err != nil {
		return nil, err
	}
	var about struct {
		Methods []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := provider.Claims(&about); err != nil {
		return nil, err
	}
	e := &endpoints{provider: provider, style: oauth2.AuthStyleInHeader}
	if p.secret == nil || len(about.Methods) > 0 && !slices.Contains(about.Methods, "client_secret_basic") {
		e.style = oauth2.AuthStyleInParams
	}
	return e, nil
}

// bounded returns a client whose answers are bounded in time and size, and that follows no
// redirects: they could send the client's secret elsewhere.
func bounded(c *http.Client) *http.Client {
	if c == nil {
		c = &http.Client{}
	}
	next := c.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	return &http.Client{
		Transport: limited{next}, Timeout: answerTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// limited is a transport whose answers have maxAnswer bytes at most.
type limited struct{ next http.RoundTripper }

func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := l.next.RoundTrip(r)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxAnswer), resp.Body}
	}
	return resp, err
}
