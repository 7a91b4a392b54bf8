package page

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"drover/pools"
	"drover/web/answer"
	"drover/web/page/table"
)

// changePath is the path of all forms: ?do=ACTION&pick=NAME&pick=NAME opens one, and a POST
// of it shows what it would do, or does it.
const changePath = "/change"

// inputPrefix is in front of the names of a form's inputs.
const inputPrefix = "in-"

// The limits of a form.
const (
	maxForm  = 1 << 20 // bytes
	maxPicks = 20_000
	maxLines = 100 // of a preview
)

// change is a form that changes something: of one machine or of many. It shows what it
// would do before it does it.
type change struct {
	Do      string
	Title   string
	Verb    string // on the button
	Warning string
	Picks   []string // what is to be changed: names of nodes, MACs, addresses, ...
	Fields  []field
	Lines   []line // the preview; nil: there is none yet
	More    int    // lines that are not shown
	Acts    int    // lines that change something
	Digest  string // of the preview: what is done is what was shown
	Error   string
	Back    string // where "Cancel" leads

	*request
	values url.Values
	next   string // where the form leads when it is done
	apply  func(context.Context) error
}

func (c *change) title() string { return c.Title }

// field is an input of a form.
type field struct {
	Name, Label, Value, Hint string
	Kind                     string // text, choice, check
	Required                 bool
	Options                  []table.Pair // value and label; of a text: what it may be, as help
}

// line is what a form would do to one thing.
type line struct {
	Target  string
	Changes []string // "pool: compute → storage"
	Refused string   // why it stays as it is
}

// refuse adds something that stays as it is.
func (c *change) refuse(target, why string) {
	c.Lines = append(c.Lines, line{Target: target, Refused: why})
}

// act adds something that changes.
func (c *change) act(target string, changes ...string) {
	c.Lines = append(c.Lines, line{Target: target, Changes: changes})
	c.Acts++
}

// value returns the value of an input.
func (c *change) value(name string) string { return c.values.Get(inputPrefix + name) }

// openChange answers with a form.
func (p *page) openChange(w http.ResponseWriter, r *http.Request) error {
	client, ok := p.guard.Session(r)
	if !ok {
		return p.login.Ask(w, r, http.StatusOK, "")
	}
	req := &request{Shared: p.cache.Get(), path: r.URL.Path, query: r.URL.Query(), client: client}
	c := &change{request: req, Do: req.query.Get("do"), Picks: req.query["pick"], values: url.Values{}}
	if req.query.Get("all") == "yes" {
		c.pickAll(p)
	}
	a, err := c.begin()
	if err != nil {
		return p.fail(w, r, client, err)
	}
	if c.Fields = a.fields(p, c); len(c.Fields) == 0 {
		p.preview(a, c)
	}
	return p.renderChange(w, http.StatusOK, c)
}

// pickAll picks everything that the filter in the query describes.
func (c *change) pickAll(p *page) {
	c.Picks = nil
	switch c.Do {
	case "forget":
		c.Picks = unknownList(c.request).Picks(c.query, c.Unknowns)
	case "release":
		c.Picks = leaseList(c.request).Picks(c.query, p.leaseInfos(c.request))
	case "next", "power", "move", "tag", "remove":
		c.Picks = machineList(c.request).Picks(c.query, c.Machines)
	}
}

// begin returns the action of a form, if the client may take it.
func (c *change) begin() (a action, err error) {
	a, ok := actions()[c.Do]
	if !ok {
		return a, answer.NotFound("the page has no action %q", c.Do)
	}
	if err := c.client.Needs(a.role); err != nil {
		return a, err
	}
	if len(c.Picks) > maxPicks {
		return a, answer.BadRequest("%d at once: at most %d", len(c.Picks), maxPicks)
	}
	slices.Sort(c.Picks)
	c.Picks = slices.Compact(c.Picks)
	if len(c.Picks) == 0 && a.picks != "" {
		return a, answer.BadRequest("nothing is chosen: mark %s in the list first", a.picks)
	}
	c.Title, c.Verb, c.Warning, c.Back, c.next = a.title, a.verb, a.warning, a.list, a.list
	switch {
	case len(c.Picks) == 1:
		c.Title += " " + c.Picks[0]
		if m := c.ByName[c.Picks[0]]; m != nil {
			c.Back, c.next = table.NodePath(m.Name), table.NodePath(m.Name)
		}
	case len(c.Picks) > 1:
		c.Title += fmt.Sprintf(" %d %s", len(c.Picks), a.picks)
	}
	return a, nil
}

// postChange answers with the preview of a form, or does what it says if that is what the
// client has seen.
func (p *page) postChange(w http.ResponseWriter, r *http.Request) error {
	client, ok := p.guard.Session(r)
	if !ok {
		return p.login.Ask(w, r, http.StatusUnauthorized, "The session is over.")
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return answer.BadRequest("that was no form of the page: %v", err)
	}
	p.cache.Forget() // it is compared with what is in force now
	req := &request{Shared: p.cache.Get(), path: r.URL.Path, client: client}
	c := &change{request: req, Do: r.PostForm.Get("do"), Picks: r.PostForm["pick"], values: r.PostForm}
	a, err := c.begin()
	if err != nil {
		return p.fail(w, r, client, err)
	}
	c.Fields = a.fields(p, c)
	for i := range c.Fields {
		c.Fields[i].Value = c.value(c.Fields[i].Name)
	}
	code := p.preview(a, c)
	if r.PostForm.Get("step") != "do" || c.Error != "" {
		return p.renderChange(w, code, c)
	}
	if r.PostForm.Get("digest") != c.Digest {
		c.Error = "This is no longer what you have seen: something has changed. Read it again."
		return p.renderChange(w, http.StatusConflict, c)
	}
	err = c.apply(r.Context())
	p.cache.Forget()
	if err != nil {
		return p.renderChange(w, p.refused(c, err), c)
	}
	http.Redirect(w, r, c.next, http.StatusSeeOther)
	return nil
}

// preview sets what a form would do, and returns the status of the answer.
func (p *page) preview(a action, c *change) int {
	code := http.StatusOK
	if err := a.plan(p, c); err != nil {
		code = p.refused(c, err)
	}
	data, _ := json.Marshal([]any{c.Do, c.Picks, c.Lines, inputs(c.values)}) // texts
	sum := sha256.Sum256(data)
	c.Digest = hex.EncodeToString(sum[:16])
	if n := len(c.Lines) - maxLines; n > 0 {
		c.Lines, c.More = c.Lines[:maxLines], n
	}
	return code
}

// refused sets the error of a form, and returns the status of the answer.
func (p *page) refused(c *change, err error) int {
	e := answer.Of(err)
	if e.Code >= http.StatusInternalServerError {
		p.api.Log.Error("change not made", "do", c.Do, "err", err)
	}
	c.Error = e.Msg
	return e.Code
}

// inputs returns the inputs of a form.
func inputs(values url.Values) url.Values {
	out := url.Values{}
	for name, v := range values {
		if len(name) > len(inputPrefix) && name[:len(inputPrefix)] == inputPrefix {
			out[name] = v
		}
	}
	return out
}

func (p *page) renderChange(w http.ResponseWriter, code int, c *change) error {
	v := &view{path: c.Back}
	if i := slices.IndexFunc(p.views, func(v *view) bool { return v.path == c.Back }); i < 0 {
		v.path = "/nodes"
	}
	return p.render(w, code, "change", p.frame(c.request, v, c))
}

// mayPools returns the names of the pools whose machines the client may change.
func (c *change) mayPools() (names []table.Pair) {
	for _, pool := range c.Farm.Config.Pools {
		if c.may(pool.Name) {
			names = append(names, table.Pair{Name: pool.Name, Value: pool.Name})
		}
	}
	return names
}

// operator is the role of most actions.
const operator = pools.RoleOperator
