package page

import (
	"net/http"
	"net/url"
	"slices"

	"drover/pools"
	"drover/web/answer"
	"drover/web/auth"
	"drover/web/page/change"
)

// changePath is the path of all forms: ?do=ACTION&pick=NAME&pick=NAME opens one, and a POST
// of it shows what it would do, or does it.
const changePath = "/change"

// MaxBody bounds the body of a request to the page, in bytes. The login has a smaller bound of
// its own.
const MaxBody = change.MaxBody

// changeView is a form as a page.
type changeView struct{ *change.Form }

func (v changeView) title() string { return v.Title }

// newForm returns the form of a request, with its values.
func (p *page) newForm(r *request, values url.Values) *change.Form {
	return &change.Form{API: p.api, Shared: r.shared, Client: r.client, Do: values.Get("do"), Picks: change.Chosen(values), Values: values}
}

// openChange answers with a form.
func (p *page) openChange(w http.ResponseWriter, r *http.Request) error {
	client, ok := p.guard.Session(r)
	if !ok {
		return p.login.Ask(w, r, http.StatusOK, "")
	}
	req := &request{shared: p.cache.Get(client), path: r.URL.Path, query: r.URL.Query(), client: client}
	f := p.newForm(req, req.query)
	if f.Values = (url.Values{}); req.query.Get("all") == "yes" {
		f.Picks = p.pickAll(req, f.Do)
	}
	if err := f.Open(); err != nil {
		return p.fail(w, r, client, err)
	}
	return p.renderChange(w, http.StatusOK, req, f)
}

// pickAll returns everything that the filter in the query describes.
func (p *page) pickAll(r *request, do string) []string {
	switch do {
	case "forget", "adopt":
		return unknownList(r).Picks(r.query, r.shared.Unknowns)
	case "release":
		return leaseList(r).Picks(r.query, p.leaseInfos(r))
	case "next", "power", "move", "tag", "remove":
		return machineList(r).Picks(r.query, r.shared.Machines)
	}
	return nil
}

// postChange answers with the preview of a form, or does what it says if that is what the
// client has seen.
func (p *page) postChange(w http.ResponseWriter, r *http.Request) error {
	client, ok := p.guard.Session(r)
	if !ok {
		return p.login.Ask(w, r, http.StatusUnauthorized, "The session is over.")
	}
	if err := p.readForm(w, r, client); err != nil {
		return p.fail(w, r, client, err)
	}
	p.cache.Forget() // it is compared with what is in force now
	req := &request{shared: p.cache.Get(client), path: r.URL.Path, client: client}
	f := p.newForm(req, r.PostForm)
	code, err := f.Preview()
	if err != nil {
		return p.fail(w, r, client, err)
	}
	if r.PostForm.Get("step") != "do" || f.Blocked {
		return p.renderChange(w, code, req, f)
	}
	code = f.Apply(r.Context())
	p.cache.Forget()
	if code != 0 {
		return p.renderChange(w, code, req, f)
	}
	http.Redirect(w, r, f.Next, http.StatusSeeOther)
	return nil
}

// readForm reads the values that a form sends. Only a client who may change something sends
// one, which can be large.
func (p *page) readForm(w http.ResponseWriter, r *http.Request, client auth.Client) error {
	if err := client.Needs(pools.RoleOperator); err != nil {
		return err
	}
	r.Body = http.MaxBytesReader(w, r.Body, change.MaxBody)
	if err := r.ParseForm(); err != nil {
		return answer.BadRequest("that was no form of the page: %v", err)
	}
	return nil
}

func (p *page) renderChange(w http.ResponseWriter, code int, r *request, f *change.Form) error {
	v := &view{path: f.Back}
	if i := slices.IndexFunc(p.views, func(v *view) bool { return v.path == f.Back }); i < 0 {
		v.path = "/nodes"
	}
	return p.render(w, code, "change", p.frame(r, v, changeView{f}))
}
