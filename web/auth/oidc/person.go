package oidc

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"strings"
	"unicode"

	openid "github.com/coreos/go-oidc/v3/oidc"

	"drover/internal/printable"
)

// Bounds of what a token says.
const (
	maxName   = 253 // bytes, also of a group
	maxGroups = 1000
)

// Person is someone who has logged in.
type Person struct {
	Name   string // for the audit
	Groups []string
}

// person returns the person of an ID token, after it has checked the token: signature,
// issuer, audience, end and nonce.
func (p *Provider) person(ctx context.Context, v *openid.IDTokenVerifier, raw, nonce string) (who Person, err error) {
	invalid := func(err error) error {
		return refuse("The provider's answer is not valid.", errors.New("ID token: "+printable.Line(err.Error(), 300)))
	}
	token, err := v.Verify(openid.ClientContext(ctx, p.client), raw)
	if err != nil {
		return who, invalid(err)
	}
	if subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(nonce)) != 1 {
		return who, invalid(errors.New("the nonce is not that of the login"))
	}
	var claims map[string]json.RawMessage
	if err := token.Claims(&claims); err != nil {
		return who, invalid(err)
	}
	if azp := text(claims["azp"]); azp != "" && azp != p.settings.ClientID {
		return who, invalid(errors.New("it was made for another client"))
	}
	who.Name = p.nameIn(claims)
	if who.Name == "" {
		return who, invalid(errors.New("it has no name of the person: set server.oidc.nameClaim"))
	}
	who.Groups = groupsIn(claims[p.settings.GroupsClaim])
	return who, nil
}

// nameIn returns the name of the person; "" for none.
func (p *Provider) nameIn(claims map[string]json.RawMessage) string {
	if name := p.settings.NameClaim; name != "" {
		return clean(text(claims[name]))
	}
	var verified bool
	if json.Unmarshal(claims["email_verified"], &verified) == nil && verified {
		if mail := clean(text(claims["email"])); mail != "" {
			return mail
		}
	}
	if name := clean(text(claims["preferred_username"])); name != "" {
		return name
	}
	return clean(text(claims["sub"]))
}

// groupsIn returns the groups of a claim: a list of texts, or one.
func groupsIn(claim json.RawMessage) (groups []string) {
	var all []string
	if json.Unmarshal(claim, &all) != nil {
		all = []string{text(claim)}
	}
	for _, g := range all[:min(len(all), maxGroups)] {
		if g != "" && len(g) <= maxName {
			groups = append(groups, g)
		}
	}
	return groups
}

// text returns the text of a claim; "" for one of another kind.
func text(claim json.RawMessage) (s string) {
	if json.Unmarshal(claim, &s) != nil {
		return ""
	}
	return s
}

// clean returns a name that cannot be taken for more than a name in the audit; "" for one that
// has other characters than names have, or too many.
func clean(name string) string {
	odd := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("@._+-|:/ ", r)
	}
	if len(name) > maxName || strings.ContainsFunc(name, odd) || strings.Contains(name, " from ") {
		return ""
	}
	return strings.TrimSpace(name)
}
