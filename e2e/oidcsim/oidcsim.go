// Package oidcsim is a provider of OpenID Connect for tests: the code flow of one confidential
// client, with PKCE. Anyone who asks is logged in. It checks what drover sends, and answers with
// what a test wants it to.
package oidcsim

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"
)

// The client that the provider knows.
const (
	ClientID     = "drover"
	ClientSecret = "the secret of drover at its provider"
	Page         = "http://localhost:8443"
	Callback     = Page + "/login/callback"
)

// Texts of the provider that must be in no error and in no log.
const (
	AccessToken = "the access token"
	ErrorText   = "a text of the provider"
)

// Provider is the provider. Its fields may be changed between requests.
type Provider struct {
	URL    string
	Named  *rsa.PrivateKey // that it says it signs with
	Claims map[string]any  // of the next ID token, beside those that it has anyway
	About  map[string]any  // of its discovery, likewise

	// Instead answers the requests for a path in its place.
	Instead map[string]http.HandlerFunc
	// IDToken returns the ID token for claims, in place of one that is signed with RS256.
	IDToken func(claims map[string]any) string

	Codes map[string]url.Values // that nobody has used, with the parameters of their login
	Asked int                   // requests for tokens

	t   testing.TB
	key *rsa.PrivateKey // that it signs with
	now func() time.Time
}

// New starts a provider, which the test ends.
func New(t testing.TB, now func() time.Time) *Provider {
	t.Helper()
	p := &Provider{t: t, now: now, Codes: map[string]url.Values{}, Instead: map[string]http.HandlerFunc{}, key: Key(0), Named: Key(0)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.discovery)
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		n, e := base64.RawURLEncoding.EncodeToString(p.Named.N.Bytes()), "AQAB"
		p.write(w, map[string]any{"keys": []any{map[string]any{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "1", "n": n, "e": e}}})
	})
	mux.HandleFunc("GET /auth", p.authorize)
	mux.HandleFunc("POST /token", p.token)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h := p.Instead[r.URL.Path]; h != nil {
			h(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	p.URL = s.URL
	return p
}

// twoKeys makes the keys of the tests, once: it takes a while.
var twoKeys = sync.OnceValue(func() (all [2]*rsa.PrivateKey) {
	for i := range all {
		all[i], _ = rsa.GenerateKey(rand.Reader, 2048) // the size is right
	}
	return all
})

// Key returns the key of providers (0), or another one (1).
func Key(i int) *rsa.PrivateKey { return twoKeys()[i] }

func (p *Provider) write(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		p.t.Error(err)
	}
}

func (p *Provider) discovery(w http.ResponseWriter, _ *http.Request) {
	about := map[string]any{
		"issuer": p.URL, "authorization_endpoint": p.URL + "/auth", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
		"id_token_signing_alg_values_supported": []string{"RS256"},
	}
	maps.Copy(about, p.About)
	p.write(w, about)
}

// authorize sends the browser back with a code.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("client_id") != ClientID || q.Get("redirect_uri") != Callback || q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" ||
		q.Get("state") == "" || q.Get("nonce") == "" || q.Get("scope") != "openid profile groups" {
		p.t.Errorf("the login asks for %s", r.URL.RawQuery)
	}
	code := rand.Text()
	p.Codes[code] = q
	http.Redirect(w, r, Callback+"?"+url.Values{"code": {code}, "state": {q.Get("state")}}.Encode(), http.StatusSeeOther)
}

// token answers a code with an ID token, once.
func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	p.Asked++
	login, ok := p.Codes[r.PostFormValue("code")]
	delete(p.Codes, r.PostFormValue("code"))
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	id, pass, _ := r.BasicAuth()
	unescaped, _ := url.QueryUnescape(pass) // RFC 6749, section 2.3.1
	if !ok || login.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) || id != ClientID || unescaped != ClientSecret {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		p.write(w, map[string]string{"error": "invalid_grant", "error_description": ErrorText})
		return
	}
	claims := map[string]any{
		"iss": p.URL, "aud": ClientID, "sub": "42", "preferred_username": "alice", "nonce": login.Get("nonce"),
		"iat": p.now().Unix(), "exp": p.now().Add(time.Minute).Unix(),
	}
	maps.Copy(claims, p.Claims)
	sign := p.IDToken
	if sign == nil {
		sign = p.sign
	}
	p.write(w, map[string]any{"access_token": AccessToken, "token_type": "Bearer", "id_token": sign(claims)})
}

// sign returns a JWT (RFC 7519), signed with RS256.
func (p *Provider) sign(claims map[string]any) string {
	text := Part(p.t, map[string]string{"alg": "RS256", "kid": "1"}) + "." + Part(p.t, claims)
	sum := sha256.Sum256([]byte(text))
	sig, err := rsa.SignPKCS1v15(rand.Reader, p.key, crypto.SHA256, sum[:])
	if err != nil {
		p.t.Error(err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(sig)
}

// Part returns a part of a JWT.
func Part(t testing.TB, v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		t.Error(err)
	}
	return base64.RawURLEncoding.EncodeToString(text)
}
