package oidc

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"golang.org/x/oauth2"
)

// Bounds of logins that are under way.
const (
	flowLife = 10 * time.Minute
	maxNext  = 1024   // bytes
	maxUsed  = 10_000 // states of logins that succeeded, or that the provider is asked about
)

// flow is a login that is under way.
type flow struct {
	State    string // in the URLs of the provider: the answer is to this login
	Nonce    string // in the ID token: it is of this login
	Verifier string // of the code: only this server can use it
	Next     string
	End      time.Time
}

func newFlow(next string, now time.Time) flow {
	if len(next) > maxNext {
		next = "/"
	}
	return flow{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), Next: next, End: now.Add(flowLife)}
}

// newSealer returns a cipher with a key that nobody else has.
func newSealer() cipher.AEAD {
	key := make([]byte, 32)
	rand.Read(key)                                 // never fails
	block, _ := aes.NewCipher(key)                 // the size is right
	aead, _ := cipher.NewGCMWithRandomNonce(block) // the block is of AES
	return aead
}

// purpose is what sealed texts are bound to.
var purpose = []byte("drover login")

func (p *Provider) seal(f flow) string {
	text, _ := json.Marshal(f) // texts and a time
	return base64.RawURLEncoding.EncodeToString(p.sealer.Seal(nil, nil, text, purpose))
}

func (p *Provider) open(sealed string) (f flow, err error) {
	data, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil {
		return f, err
	}
	text, err := p.sealer.Open(nil, nil, data, purpose)
	if err != nil {
		return f, err
	}
	return f, json.Unmarshal(text, &f)
}

// cookieName returns the name of the cookie of logins. With HTTPS its prefix binds the
// cookie to the host and to HTTPS.
func (p *Provider) cookieName() string {
	if p.Secure() {
		return "__Host-drover-login"
	}
	return "drover-login"
}

// Secure reports whether browsers open the page by HTTPS, also if a proxy ends that.
func (p *Provider) Secure() bool { return strings.HasPrefix(p.settings.URL, "https:") }

// cookie returns the cookie of a login. The browser comes back from another site, so it has
// to be lax.
func (p *Provider) cookie(value string, life time.Duration) *http.Cookie {
	c := &http.Cookie{
		Name: p.cookieName(), Value: value, Path: "/", MaxAge: int(life.Seconds()),
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: p.Secure(),
	}
	if life <= 0 {
		c.MaxAge = -1
	}
	return c
}

// Forget returns the cookie that removes the one of a login.
func (p *Provider) Forget() *http.Cookie { return p.cookie("", 0) }

// flow returns the login that a browser comes back from.
func (p *Provider) flow(r *http.Request, state string) (f flow, err error) {
	again := func(why string) error { return refuse("This login is over. Begin anew.", errors.New(why)) }
	c, err := r.Cookie(p.cookieName())
	if err != nil {
		return f, again("no cookie of a login")
	}
	if f, err = p.open(c.Value); err != nil {
		return f, again("the cookie is not of this server, or of before its start")
	}
	now := p.now()
	if subtle.ConstantTimeCompare([]byte(f.State), []byte(state)) != 1 {
		return f, again("the state is not that of the browser")
	}
	if !now.Before(f.End) {
		return f, again("it took more than " + flowLife.String())
	}
	return f, nil
}

// use takes the state of a login, before the provider is asked about it. A state is good once.
func (p *Provider) use(f flow) error {
	now := p.now()
	p.mu.Lock()
	defer p.mu.Unlock()
	first := ""
	for s, end := range p.used {
		switch {
		case !now.Before(end):
			delete(p.used, s)
		case first == "" || end.Before(p.used[first]):
			first = s
		}
	}
	if _, used := p.used[f.State]; used {
		return refuse("This login is over. Begin anew.", errors.New("the state was used before"))
	}
	if len(p.used) >= maxUsed { // the provider itself takes no code twice
		delete(p.used, first)
	}
	p.used[f.State] = f.End
	return nil
}

// free gives back the state of a login that has failed: it begins nothing.
func (p *Provider) free(f flow) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.used, f.State)
}
