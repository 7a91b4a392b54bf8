package api

import (
	"fmt"
	"net/http"
	"slices"

	"drover/pools"
	"drover/pools/audit"
	"drover/web/answer"
	"drover/web/listing"
	"drover/web/route"
)

// TokenStore is the named tokens of the API.
type TokenStore interface {
	// List returns all tokens. The caller may change the list.
	List() []pools.APIToken
	// Check returns the token that Create would make, and the same errors.
	Check(r pools.APITokenRequest, by string) (pools.APIToken, error)
	// Create makes a token, durably. Its errors for a bad request are
	// [pools.ErrTokenExists] and [*pools.HintError].
	Create(r pools.APITokenRequest, by string) (pools.NewAPIToken, error)
	// Rotate gives a token another secret, and Revoke removes it, durably. They return
	// [pools.ErrNoToken].
	Rotate(name string) (pools.NewAPIToken, error)
	Revoke(name string) error
}

// tokensPath is the path of the tokens of the API.
const tokensPath = "/api/v1/tokens"

var tokenList = listing.List[pools.APIToken]{Max: 1000, Columns: []listing.Column[pools.APIToken]{
	{Name: "name", Of: func(t *pools.APIToken) string { return t.Name }},
	{Name: "role", Of: func(t *pools.APIToken) string { return string(t.Role) }},
	{Name: "pool", All: func(t *pools.APIToken) []string { return t.Pools }},
	{Name: "expires", Of: func(t *pools.APIToken) string { return listing.Time(t.Expires) }, SortOnly: true},
}}

func (a *API) tokenRoutes() []route.Route {
	const one = tokensPath + "/{name}"
	return []route.Route{
		{
			Method: "GET", Path: tokensPath, Summary: "The named tokens of the API, without their secrets", Role: pools.RoleAdmin,
			Query: tokenList.Parameters(), Status: 200, Answer: []pools.APIToken{}, Handle: a.listTokens,
		},
		{
			Method: "POST", Path: tokensPath, Summary: "Make a token; the answer is the only one with its secret", Role: pools.RoleAdmin,
			Body: pools.APITokenRequest{}, Status: 201, Answer: pools.NewAPIToken{}, Errors: []int{409}, Handle: a.createToken,
		},
		{
			Method: "POST", Path: one + "/rotate", Summary: "Give a token another secret", Role: pools.RoleAdmin,
			Status: 200, Answer: pools.NewAPIToken{}, Errors: noSuch, Handle: a.rotateToken,
		},
		{
			Method: "DELETE", Path: one, Summary: "Revoke a token", Role: pools.RoleAdmin,
			Status: 204, Errors: noSuch, Handle: a.revokeToken,
		},
	}
}

func (a *API) listTokens(w http.ResponseWriter, r *http.Request) error {
	return tokenList.Answer(w, r, a.APITokens.List())
}

func (a *API) createToken(w http.ResponseWriter, r *http.Request) error {
	var req pools.APITokenRequest
	if err := readJSON(r, &req); err != nil {
		return err
	}
	by := client(r).String()
	for _, name := range req.Pools {
		if !slices.ContainsFunc(a.Farm.Farm().Config.Pools, func(p pools.Pool) bool { return p.Name == name }) {
			return &answer.Error{Code: http.StatusBadRequest, Name: answer.CodeBody, Field: "pools", Msg: fmt.Sprintf("unknown pool %q", name)}
		}
	}
	if route.IsDryRun(r) {
		made, err := a.APITokens.Check(req, by)
		if err == nil {
			answer.JSON(w, http.StatusOK, pools.NewAPIToken{APIToken: made})
		}
		return err
	}
	made, err := a.APITokens.Create(req, by)
	if err != nil {
		return err
	}
	a.record(client(r), fmt.Sprintf("make token %s with the role %s", made.Name, made.Role), "", audit.Between(nil, made.APIToken)...)
	answer.JSON(w, http.StatusCreated, made)
	return nil
}

func (a *API) rotateToken(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	old, err := a.apiToken(name)
	if err != nil {
		return err
	}
	if route.IsDryRun(r) {
		answer.JSON(w, http.StatusOK, pools.NewAPIToken{APIToken: old})
		return nil
	}
	made, err := a.APITokens.Rotate(name)
	if err != nil {
		return err
	}
	a.record(client(r), "rotate token "+name, "", audit.Between(old, made.APIToken)...)
	answer.JSON(w, http.StatusOK, made)
	return nil
}

func (a *API) revokeToken(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	old, err := a.apiToken(name)
	if err != nil {
		return err
	}
	if !route.IsDryRun(r) {
		if err := a.APITokens.Revoke(name); err != nil {
			return err
		}
		a.record(client(r), "revoke token "+name, "", audit.Between(old, nil)...)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// apiToken returns the token of that name.
func (a *API) apiToken(name string) (pools.APIToken, error) {
	for _, t := range a.APITokens.List() {
		if t.Name == name {
			return t, nil
		}
	}
	return pools.APIToken{}, fmt.Errorf("%w: %q", pools.ErrNoToken, name)
}
