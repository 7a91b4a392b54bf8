package page

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"drover/pools"
	"drover/pools/config/decode"
	"drover/web/answer"
	"drover/web/auth"
)

// form is an open form of the page.
type form struct {
	Forget bool   // the form removes the unknown machine with the MAC in MACs
	Power  string // the form switches this node; without Forget and Power it adds a node
	Error  string // the reason why the last submission failed

	Name, Pool, MACs, IP, Tags string

	Pools []string // names of all pools
}

// formOf returns the form of a link of the page: /?add=MAC, /?forget=MAC or
// /?power=NODE. It returns nil for other queries.
func (p *page) formOf(query url.Values) *form {
	if query.Has("power") {
		return &form{Power: query.Get("power")}
	}
	for _, what := range []string{"add", "forget"} {
		if !query.Has(what) {
			continue
		}
		f := &form{Forget: what == "forget"}
		if mac, err := pools.ParseMAC(query.Get(what)); err == nil {
			f.MACs = mac.String()
		}
		return f
	}
	return nil
}

// add adds a node.
func (p *page) add(w http.ResponseWriter, r *http.Request) error {
	return p.change(w, r, &form{}, func(f *form, by auth.Client) (string, error) {
		n, err := f.node()
		if err != nil {
			return "", err
		}
		return "/#machine-" + n.Name, p.api.AddNode(n, by)
	})
}

// power switches a node.
func (p *page) power(w http.ResponseWriter, r *http.Request) error {
	return p.change(w, r, &form{}, func(f *form, by auth.Client) (string, error) {
		req := pools.PowerRequest{Action: r.PostForm.Get("action"), Nodes: []string{f.Power}}
		_, err := p.api.SwitchPower(r.Context(), by, req)
		return "/#machine-" + f.Power, err
	})
}

// forget removes an unknown machine.
func (p *page) forget(w http.ResponseWriter, r *http.Request) error {
	return p.change(w, r, &form{Forget: true}, func(f *form, by auth.Client) (string, error) {
		mac, err := pools.ParseMAC(f.MACs)
		if err != nil {
			return "", answer.BadRequest("%v", err)
		}
		return "/", p.api.Forget(mac, by)
	})
}

// change handles a submitted form: it checks the session and its role, and calls do. It
// redirects to the path that do returns. After an error it answers with the form as it
// was filled in, and the error.
func (p *page) change(w http.ResponseWriter, r *http.Request, f *form, do func(*form, auth.Client) (next string, err error)) error {
	client, ok := p.guard.Session(r)
	if !ok {
		return p.render(w, http.StatusUnauthorized, "login.html", "The session is over.")
	}
	r.Body = http.MaxBytesReader(w, r.Body, 16<<10)
	if err := r.ParseForm(); err != nil {
		return answer.BadRequest("that was no form of the page: %v", err)
	}
	f.Name, f.Pool, f.IP = r.PostForm.Get("name"), r.PostForm.Get("pool"), r.PostForm.Get("ip")
	f.Power = r.PostForm.Get("power")
	f.MACs, f.Tags = r.PostForm.Get("macs"), r.PostForm.Get("tags")
	next, err := "", client.Needs(pools.RoleOperator)
	if err == nil {
		next, err = do(f, client)
	}
	if err == nil {
		http.Redirect(w, r, next, http.StatusSeeOther)
		return nil
	}
	failed := answer.Of(err)
	if failed.Code >= http.StatusInternalServerError {
		p.api.Log.Error("change not made", "path", r.URL.Path, "err", err)
	}
	f.Error = failed.Msg
	return p.page(w, r, failed.Code, f)
}

// node returns the node of a form, decoded as strictly as a node of the API.
func (f *form) node() (pools.PoolNode, error) {
	list := func(s string) []string {
		return strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == ',' || r == '\n' || r == '\r' || r == '\t' })
	}
	v := map[string]any{"name": strings.TrimSpace(f.Name), "pool": f.Pool, "macs": list(f.MACs), "tags": list(f.Tags)}
	if ip := strings.TrimSpace(f.IP); ip != "" {
		v["ip"] = ip
	}
	if v["name"] == "" {
		return pools.PoolNode{}, answer.BadRequest("the node has no name")
	}
	var n pools.PoolNode
	data, err := json.Marshal(v)
	if err == nil {
		err = decode.JSON(data, &n)
	}
	return n, err
}
