package web_test

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

// provider is a provider of OpenID Connect: the code flow of one confidential client, with
// PKCE. Anyone who asks is logged in.
type provider struct {
	t      *testing.T
	url    string
	key    *rsa.PrivateKey // that it signs with
	named  *rsa.PrivateKey // that it says it signs with
	now    func() time.Time
	claims map[string]any // of the next ID token, beside those that it has anyway

	codes map[string]url.Values // that nobody has used, with the parameters of their login
	asked int                   // requests for tokens
}

const (
	clientID     = "drover"
	clientSecret = "the secret of drover at its provider"
	callback     = "http://localhost:8443/login/callback"
)

func newProvider(t *testing.T, now func() time.Time) *provider {
	t.Helper()
	p := &provider{t: t, now: now, codes: map[string]url.Values{}, key: keys(0)}
	p.named = p.key
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		p.write(w, map[string]any{
			"issuer": p.url, "authorization_endpoint": p.url + "/auth", "token_endpoint": p.url + "/token", "jwks_uri": p.url + "/keys",
			"id_token_signing_alg_values_supported": []string{"RS256"},
		})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		n, e := base64.RawURLEncoding.EncodeToString(p.named.N.Bytes()), "AQAB"
		p.write(w, map[string]any{"keys": []any{map[string]any{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "1", "n": n, "e": e}}})
	})
	mux.HandleFunc("GET /auth", p.authorize)
	mux.HandleFunc("POST /token", p.token)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	p.url = s.URL
	return p
}

// twoKeys makes the keys of the tests, once: it takes a while.
var twoKeys = sync.OnceValue(func() (all [2]*rsa.PrivateKey) {
	for i := range all {
		all[i], _ = rsa.GenerateKey(rand.Reader, 2048) // the size is right
	}
	return all
})

func keys(i int) *rsa.PrivateKey { return twoKeys()[i] }

func (p *provider) write(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		p.t.Error(err)
	}
}

// authorize sends the browser back with a code.
func (p *provider) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("client_id") != clientID || q.Get("redirect_uri") != callback || q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" ||
		q.Get("state") == "" || q.Get("nonce") == "" || q.Get("scope") != "openid profile groups" {
		p.t.Errorf("the login asks for %s", r.URL.RawQuery)
	}
	code := rand.Text()
	p.codes[code] = q
	http.Redirect(w, r, callback+"?"+url.Values{"code": {code}, "state": {q.Get("state")}}.Encode(), http.StatusSeeOther)
}

// token answers a code with an ID token, once.
func (p *provider) token(w http.ResponseWriter, r *http.Request) {
	p.asked++
	login, ok := p.codes[r.PostFormValue("code")]
	delete(p.codes, r.PostFormValue("code"))
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	id, pass, _ := r.BasicAuth()
	unescaped, _ := url.QueryUnescape(pass) // RFC 6749, section 2.3.1
	if !ok || login.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) || id != clientID || unescaped != clientSecret {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		p.write(w, map[string]string{"error": "invalid_grant", "error_description": "a text of the provider"})
		return
	}
	claims := map[string]any{
		"iss": p.url, "aud": clientID, "sub": "42", "preferred_username": "alice", "nonce": login.Get("nonce"),
		"iat": p.now().Unix(), "exp": p.now().Add(time.Minute).Unix(),
	}
	maps.Copy(claims, p.claims)
	p.write(w, map[string]any{"access_token": "the access token", "token_type": "Bearer", "id_token": p.sign(claims)})
}

// sign returns a JWT (RFC 7519), signed with RS256.
func (p *provider) sign(claims map[string]any) string {
	part := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			p.t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(text)
	}
	text := part(map[string]string{"alg": "RS256", "kid": "1"}) + "." + part(claims)
	sum := sha256.Sum256([]byte(text))
	sig, err := rsa.SignPKCS1v15(rand.Reader, p.key, crypto.SHA256, sum[:])
	if err != nil {
		p.t.Fatal(err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(sig)
}
