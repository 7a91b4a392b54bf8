package ilosim

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// LinkStyle is how REST links are written.
type LinkStyle string

// The link styles.
const (
	Href  LinkStyle = "href"  // links.Member[].href, before Redfish
	OData LinkStyle = "odata" // Members[].@odata.id
)

// Handler returns the REST interface of the chassis manager. That it lists the
// MACs of the nodes is an assumption taken from iLO 4: no recording is published.
func (c *Chassis) Handler(f LinkStyle) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /rest/v1", c.asRoot)
	mux.HandleFunc("POST /rest/v1/sessions", c.openSession)
	mux.HandleFunc("DELETE /rest/v1/sessions/{token}", c.closeSession)
	mux.HandleFunc("GET /rest/v1/systemssummary", c.summary)
	mux.HandleFunc("GET /rest/v1/systems", func(w http.ResponseWriter, _ *http.Request) { c.systems(w, f) })
	mux.HandleFunc("/rest/v1/systems/{slot}", c.system)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Paths have no case on a chassis: C7N1 is c7n1.
		r.URL.Path = strings.TrimSuffix(strings.ToLower(r.URL.Path), "/")
		if c.admit(w, r) {
			mux.ServeHTTP(w, r)
		}
	})
}

// admit checks the login, and applies the faults that concern any request. It
// reports whether the request may go on; otherwise it has answered.
func (c *Chassis) admit(w http.ResponseWriter, r *http.Request) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.fault(ServerError):
		fail(w, http.StatusInternalServerError, "InternalError")
	case c.fault(Busy):
		w.Header().Set("Retry-After", "0")
		fail(w, http.StatusServiceUnavailable, "ServiceTemporarilyUnavailable")
	case c.fault(Forbidden):
		fail(w, http.StatusForbidden, "InsufficientPrivilege")
	case c.fault(Unauthorized), !c.known(r):
		fail(w, http.StatusUnauthorized, "NoValidSession")
	default:
		return true
	}
	return false
}

// known reports whether a request is authenticated or needs no login; c.mu is held.
func (c *Chassis) known(r *http.Request) bool {
	if r.URL.Path == "/rest/v1" || (r.URL.Path == "/rest/v1/sessions" || r.URL.Path == sessions) && r.Method == http.MethodPost {
		return true
	}
	if token := r.Header.Get("X-Auth-Token"); token != "" {
		if c.fault(TokenExpires) {
			delete(c.tokens, token)
		}
		return c.tokens[token]
	}
	user, password, ok := r.BasicAuth()
	if ok {
		c.logins++
	}
	return ok && user == c.User && password == c.Password
}

func (c *Chassis) asRoot(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, object{
		"Name": "HP RESTful Root Service", "Oem": object{"Hp": object{"Manager": []object{{"ManagerType": "Moonshot CM"}}}},
		"links": object{"Systems": object{"href": "/rest/v1/Systems"}},
	})
}

func (c *Chassis) openSession(w http.ResponseWriter, r *http.Request) {
	var in struct{ UserName, Password string }
	c.mu.Lock()
	defer c.mu.Unlock()
	c.logins++
	if json.NewDecoder(r.Body).Decode(&in) != nil || in.UserName != c.User || in.Password != c.Password {
		fail(w, http.StatusUnauthorized, "NoValidSession")
		return
	}
	token := rand.Text()
	if c.tokens == nil {
		c.tokens = map[string]bool{}
	}
	c.tokens[token] = true
	w.Header().Set("X-Auth-Token", token)
	w.Header().Set("Location", strings.TrimSuffix(r.URL.Path, "/")+"/"+token+"/")
	writeJSON(w, http.StatusCreated, object{})
}

func (c *Chassis) closeSession(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.tokens, r.PathValue("token"))
	writeJSON(w, http.StatusOK, object{})
}

func (c *Chassis) summary(w http.ResponseWriter, _ *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fault(NoSummary) {
		fail(w, http.StatusNotFound, "ResourceMissingAtURI")
		return
	}
	var all []object
	for i, n := range c.sorted() {
		if n.Empty {
			continue
		}
		key := "Power"
		if i%2 == 1 {
			key = "PowerState" // both are seen
		}
		all = append(all, object{"Name": fmt.Sprintf("Cartridge %d Node %d", n.Cartridge, n.Number), key: c.powerOf(n)})
	}
	writeJSON(w, http.StatusOK, object{"Systems": all})
}

func (c *Chassis) systems(w http.ResponseWriter, f LinkStyle) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var links []object
	key := map[LinkStyle]string{Href: "href", OData: "@odata.id"}[f]
	for _, n := range c.sorted() {
		if !n.Empty {
			links = append(links, object{key: "/rest/v1/Systems/" + strings.ToUpper(n.ID())})
		}
	}
	body := object{"Name": "Computer Systems"}
	if f == OData {
		body["Members"] = links
	} else {
		body["links"] = object{"Member": links}
	}
	if c.fault(CyclicLinks) {
		body["Members@odata.nextLink"] = object{"@odata.id": "/rest/v1/Systems"}
	}
	writeJSON(w, http.StatusOK, body)
}

// system shows a node, and switches it.
func (c *Chassis) system(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	n := c.nodes[r.PathValue("slot")]
	notify := func() {}
	switch {
	case n == nil || n.Empty:
		fail(w, http.StatusNotFound, "ResourceMissingAtURI")
	case r.Method == http.MethodGet:
		writeJSON(w, http.StatusOK, c.describe(n))
	case r.Method == http.MethodPatch:
		c.patch(w, r, n)
	case r.Method == http.MethodPost:
		notify = c.reset(w, r, n)
	default:
		fail(w, http.StatusMethodNotAllowed, "ActionNotSupported")
	}
	c.mu.Unlock()
	notify()
}

func (c *Chassis) describe(n *Node) object {
	var macs []any
	for _, m := range n.MACs {
		switch {
		case c.faults[NullMACs] != 0:
			macs = append(macs, nil, "")
		case m == "N/A":
			macs = append(macs, "")
		default:
			macs = append(macs, m)
		}
	}
	once, target := "Disabled", "None"
	if n.bootOnce != "" {
		once, target = "Once", n.bootOnce
	}
	pxe := "Pxe"
	if c.faults[OnlyUpperPXE] != 0 {
		pxe = "PXE"
	}
	v := object{
		"Name": fmt.Sprintf("Cartridge %d Node %d", n.Cartridge, n.Number), "Manufacturer": "HP", "Model": n.Model,
		"SerialNumber": n.Serial, "AssetTag": n.AssetTag, "PowerState": c.powerOf(n), "Status": object{"Health": "OK"},
		"HostCorrelation": object{"HostMACAddress": macs, "IPAddress": []string{"", ""}},
		"Boot": object{
			"BootSourceOverrideEnabled": once, "BootSourceOverrideTarget": target,
			"BootSourceOverrideSupported": []string{"None", pxe, "Hdd"},
		},
		"AvailableActions": []object{{"Action": "Reset"}},
	}
	if c.faults[NoPower] != 0 {
		v["PowerState"] = nil
	}
	return v
}

func (c *Chassis) patch(w http.ResponseWriter, r *http.Request, n *Node) {
	var in struct {
		Boot struct{ BootSourceOverrideEnabled, BootSourceOverrideTarget string }
	}
	err := json.NewDecoder(r.Body).Decode(&in)
	switch target := in.Boot.BootSourceOverrideTarget; {
	case err == nil && target == "None" && in.Boot.BootSourceOverrideEnabled == "Disabled":
		n.bootOnce = ""
	case err != nil || !strings.EqualFold(target, "pxe") || c.faults[OnlyUpperPXE] != 0 && target != "PXE":
		fail(w, http.StatusBadRequest, "PropertyValueNotInList")
		return
	default:
		c.setBootOnce(n, target)
	}
	writeJSON(w, http.StatusOK, object{"Messages": []object{{"MessageID": "Base.0.10.Success"}}})
}

func (c *Chassis) reset(w http.ResponseWriter, r *http.Request, n *Node) (notify func()) {
	var in struct{ Action, ResetType string }
	notify = func() {}
	if json.NewDecoder(r.Body).Decode(&in) != nil || in.Action != "" && in.Action != "Reset" {
		fail(w, http.StatusBadRequest, "ActionNotSupported")
		return notify
	}
	switch in.ResetType {
	case "On":
		notify = c.setPower(n, true, false)
	case "ForceOff":
		notify = c.setPower(n, false, true)
	case "PushPowerButton":
		notify = c.setPower(n, n.power == "Off", false)
	default:
		fail(w, http.StatusBadRequest, "ActionParameterNotSupported")
		return notify
	}
	writeJSON(w, http.StatusOK, object{"Messages": []object{{"MessageID": "Base.0.10.Success"}}})
	return notify
}
