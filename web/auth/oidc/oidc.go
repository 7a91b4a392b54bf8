// Package oidc logs people in at a provider of OpenID Connect, by the authorization code flow
// with PKCE (RFC 7636).
//
//	start, err := provider.Begin(ctx, "/nodes") // the browser goes to start.URL with start.Cookie
//	who, next, err := provider.Finish(ctx, r)   // it is back
//
// What a login needs until the browser is back (state, nonce, verifier, and where to go next)
// is in a cookie of that browser, sealed with a key of this process. So people who begin
// logins and do not end them cost no memory, nor do logins that fail. A state is good for one
// login, and for ten minutes.
//
// The ID token says who it is, and the access token is thrown away. Tokens, codes and the
// client's secret are in no error and in no log.
//
// The package does not know roles and sessions.
package oidc

import (
	"context"
	"crypto/cipher"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	openid "github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"golang.org/x/sync/singleflight"

	"drover/internal/printable"
	"drover/pools"
	"drover/web/answer"
)

// CallbackPath is where the provider leads browsers back to, below the URL of the page.
const CallbackPath = "/login/callback"

// Provider logs people in. Make it with [New].
type Provider struct {
	settings pools.OIDC
	secret   func(context.Context) (string, error)
	client   *http.Client
	now      func() time.Time
	sealer   cipher.AEAD

	discovery    singleflight.Group
	mu           sync.Mutex
	discovered   *endpoints           // nil: not yet
	undiscovered error                // why not
	tried        time.Time            // when that was
	used         map[string]time.Time // states of [Provider.use], until they expire
}

// endpoints are what the provider says about itself.
type endpoints struct {
	provider *openid.Provider
	style    oauth2.AuthStyle
}

// New returns a provider. It is asked for its endpoints at the first login, so that it may be
// down when drover starts. client reaches it; secret returns the client's secret each time
// that it is used, and is nil for a client without one.
func New(settings pools.OIDC, client *http.Client, secret func(context.Context) (string, error), now func() time.Time) *Provider {
	return &Provider{settings: settings, secret: secret, client: bounded(client), now: now, sealer: newSealer(), used: map[string]time.Time{}}
}

// Host returns the host of the provider, for people.
func (p *Provider) Host() string {
	u, err := url.Parse(p.settings.Issuer)
	if err != nil {
		return p.settings.Issuer
	}
	return u.Hostname()
}

// Start is the begin of a login.
type Start struct {
	URL    string       // of the provider, where the browser has to go
	Cookie *http.Cookie // that it has to bring back
}

// Begin begins a login. next is where the browser goes when it is done: path and query of
// this server.
func (p *Provider) Begin(ctx context.Context, next string) (Start, error) {
	e, err := p.discover(ctx)
	if err != nil {
		return Start{}, err
	}
	f := newFlow(next, p.now())
	url := p.config(e, "").AuthCodeURL(f.State, openid.Nonce(f.Nonce), oauth2.S256ChallengeOption(f.Verifier))
	return Start{URL: url, Cookie: p.cookie(p.seal(f), flowLife)}, nil
}

// config returns the client of OAuth 2.0.
func (p *Provider) config(e *endpoints, secret string) *oauth2.Config {
	endpoint := e.provider.Endpoint()
	endpoint.AuthStyle = e.style
	return &oauth2.Config{
		ClientID: p.settings.ClientID, ClientSecret: secret, Endpoint: endpoint, RedirectURL: p.settings.URL + CallbackPath,
		Scopes: append([]string{openid.ScopeOpenID}, p.settings.Scopes...),
	}
}

// Finish ends a login with what the provider sent the browser back with. Errors are an
// [answer.Error] for people, around one for the log.
func (p *Provider) Finish(ctx context.Context, r *http.Request) (who Person, next string, err error) {
	query := r.URL.Query()
	f, err := p.flow(r, query.Get("state"))
	if err != nil {
		return who, "", err
	}
	if why := query.Get("error"); why != "" {
		return who, "", refuse("The provider has refused the login: "+printable.Quote(why, 60)+".", errors.New("the provider refused it"))
	}
	if iss := query.Get("iss"); iss != "" && iss != p.settings.Issuer { // RFC 9207
		return who, "", refuse("The answer is not the provider's.", errors.New("iss is not the issuer"))
	}
	if err := p.use(f); err != nil {
		return who, "", err
	}
	raw, verifier, err := p.exchange(ctx, query.Get("code"), f.Verifier)
	if err == nil {
		who, err = p.person(ctx, verifier, raw, f.Nonce)
	}
	if err != nil {
		p.free(f)
	}
	if e, ok := errors.AsType[*Error](err); ok {
		e.Asked = true
	}
	return who, f.Next, err
}

// exchange gets the ID token for a code.
func (p *Provider) exchange(ctx context.Context, code, verifier string) (raw string, v *openid.IDTokenVerifier, err error) {
	e, err := p.discover(ctx)
	if err != nil {
		return "", nil, err
	}
	var secret string
	if p.secret != nil {
		if secret, err = p.secret(ctx); err != nil {
			return "", nil, &answer.Error{Code: http.StatusServiceUnavailable, Msg: "server.oidc.clientSecret: " + err.Error()}
		}
		secret = strings.TrimSpace(secret)
	}
	ctx = openid.ClientContext(ctx, p.client)
	token, err := p.config(e, secret).Exchange(ctx, code, oauth2.VerifierOption(verifier))
	if err != nil {
		return "", nil, refuse("The provider does not take this login. Begin anew.", exchangeError(err))
	}
	raw, _ = token.Extra("id_token").(string)
	if raw == "" {
		return "", nil, refuse("The provider's answer is not valid.", errors.New("it has no ID token"))
	}
	return raw, e.provider.Verifier(&openid.Config{ClientID: p.settings.ClientID, Now: p.now}), nil
}

// exchangeError returns an error without the body of the provider's answer, which could have
// tokens in it.
func exchangeError(err error) error {
	if r, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		return errors.New("token endpoint: status " + r.Response.Status + ", error " + printable.Quote(r.ErrorCode, 60))
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		return errors.New("token endpoint: " + u.Err.Error())
	}
	return errors.New("token endpoint: its answer is not that of OAuth 2.0")
}

// refuse returns the error of a login that fails: msg is for people, why for the log.
func refuse(msg string, why error) error {
	return &Error{Answer: &answer.Error{Code: http.StatusForbidden, Msg: msg}, Why: why}
}

// Error is the error of a login that fails.
type Error struct {
	Answer *answer.Error // for people
	Why    error         // for the log
	Asked  bool          // the provider was asked
}

func (e *Error) Error() string { return e.Why.Error() }

// Unwrap returns the error for people.
func (e *Error) Unwrap() error { return e.Answer }
