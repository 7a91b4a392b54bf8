package ilosim

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Override is the boot source of a [BMC]'s machine.
type Override struct{ Target, Enabled, Mode string }

// BMC is a management processor with Redfish and the [Habits] of a vendor, and its machine. Changes
// take a number of readings, and no time.
type BMC struct {
	Habits
	Fault          BMCFault
	User, Password string // default root, correct horse

	mu       sync.Mutex
	on       bool
	boot     Override // of the system
	settings Override // of the settings resource, if there is one
	hidden   *Override
	booted   Override // at the last start
	starts   int
	version  int // of the tags
	done     map[BMCFault]bool
	tokens   map[string]bool
	shown    object // of the system, while a change is not seen
	unseen   int    // readings until it is
	log      []string
	logins   int
}

// NewBMC returns a processor whose machine is on or off and has a boot source.
func NewBMC(h Habits, on bool, boot Override) *BMC {
	b := &BMC{Habits: h, Fault: NoBMCFault, User: "root", Password: "correct horse", on: on, done: map[BMCFault]bool{}, tokens: map[string]bool{}}
	if len(b.IDs) == 0 {
		b.IDs = []string{"1"}
	}
	if b.NoMode {
		boot.Mode = ""
	}
	b.boot, b.settings = boot, boot
	return b
}

// Machine returns the power and the boot source of the machine, with what is pending. Starts are
// how often it was switched on, and booted is the boot source of the last time.
func (b *BMC) Machine() (on bool, boot Override, starts int, booted Override) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.on, b.next(), b.starts, b.booted
}

// Sessions returns the number of open sessions.
func (b *BMC) Sessions() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.tokens)
}

// Logins returns the number of attempts to open a session.
func (b *BMC) Logins() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.logins
}

// Log returns the changes and actions that were asked for.
func (b *BMC) Log() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(b.log, "\n")
}

// next is the boot source of the next start; b.mu is held.
func (b *BMC) next() Override {
	switch {
	case b.hidden != nil:
		return *b.hidden
	case b.Settings != "":
		return b.settings
	}
	return b.boot
}

// happens reports whether a fault happens that happens once; b.mu is held.
func (b *BMC) happens(f BMCFault) bool {
	once := b.Fault == f && !b.done[f]
	b.done[f] = b.done[f] || once
	return once
}

const (
	bmcRoot     = "/redfish/v1"
	bmcSystems  = bmcRoot + "/Systems"
	bmcSessions = bmcRoot + "/SessionService/Sessions"
	bmcReset    = "/Actions/ComputerSystem.Reset"
	bmcInfo     = "/ResetActionInfo"
)

// Handler returns the Redfish service.
func (b *BMC) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := strings.TrimSuffix(r.URL.Path, "/")
		if b.Slash && path == r.URL.Path {
			http.Redirect(w, r, path+"/", http.StatusPermanentRedirect)
			return
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		switch {
		case path == bmcRoot:
			v := object{"Systems": object{"@odata.id": bmcSystems}}
			if b.Login != BasicLogin && b.Login != HiddenLogin {
				v["Links"] = object{"Sessions": object{"@odata.id": bmcSessions}}
			}
			writeJSON(w, http.StatusOK, v)
		case path == bmcSessions && r.Method == http.MethodPost && b.Login != BasicLogin:
			b.login(w, r)
		case !b.knows(r):
			refuse(w, http.StatusUnauthorized, "Base.1.12.NoValidSession", "There is no valid session.")
		case strings.HasPrefix(path, bmcSessions+"/") && r.Method == http.MethodDelete:
			delete(b.tokens, path[len(bmcSessions)+1:])
			w.WriteHeader(http.StatusNoContent)
		default:
			b.serve(w, r, path)
		}
	})
}

func (b *BMC) login(w http.ResponseWriter, r *http.Request) {
	var in struct{ UserName, Password string }
	b.logins++
	switch {
	case json.NewDecoder(r.Body).Decode(&in) != nil || in.UserName != b.User || in.Password != b.Password:
		refuse(w, http.StatusUnauthorized, "Base.1.12.ResourceAtUriUnauthorized", "Invalid credentials "+in.Password+".")
	case b.Fault == SessionsFull:
		refuse(w, http.StatusBadRequest, "Base.1.12.SessionLimitExceeded", "There are too many sessions.")
	default:
		token := rand.Text()
		b.tokens[token] = true
		w.Header().Set("X-Auth-Token", token)
		w.Header().Set("Location", bmcSessions+"/"+token)
		writeJSON(w, http.StatusCreated, object{})
	}
}

func (b *BMC) knows(r *http.Request) bool {
	if token := r.Header.Get("X-Auth-Token"); token != "" {
		if b.happens(SessionEnds) {
			delete(b.tokens, token)
		}
		return b.tokens[token]
	}
	user, password, ok := r.BasicAuth()
	return ok && b.Login != SessionLogin && b.Login != HiddenLogin && user == b.User && password == b.Password
}

// serve answers a request for the systems.
func (b *BMC) serve(w http.ResponseWriter, r *http.Request, path string) {
	if path == bmcSystems {
		var all []object
		for _, id := range slices.Backward(b.IDs) {
			all = append(all, object{"@odata.id": bmcSystems + "/" + id})
		}
		writeJSON(w, http.StatusOK, object{"Members": all})
		return
	}
	id, part, _ := strings.Cut(strings.TrimPrefix(path, bmcSystems+"/"), "/")
	if part != "" {
		part = "/" + part
	}
	switch {
	case !slices.Contains(b.IDs, id):
		refuse(w, http.StatusNotFound, "Base.1.12.ResourceMissingAtURI", "There is no "+path+".")
	case id != b.IDs[0] && (r.Method != http.MethodGet || part != ""):
		refuse(w, http.StatusMethodNotAllowed, "Base.1.12.OperationNotAllowed", "It is no machine.")
	case id != b.IDs[0]:
		writeJSON(w, http.StatusOK, object{"Id": id, "Name": "Baseboard", "SerialNumber": "B2", "PowerState": "On"})
	case r.Method == http.MethodGet && part == "":
		b.send(w, b.system(id))
	case r.Method == http.MethodGet && part == "/"+b.Settings:
		b.send(w, object{"Id": b.Settings, "Boot": b.bootObject(b.settings)})
	case r.Method == http.MethodGet && part == bmcInfo:
		writeJSON(w, http.StatusOK, object{"Parameters": []object{{"Name": "ResetType", "AllowableValues": b.resets()}}})
	case r.Method == http.MethodPatch && (part == "" || part == "/"+b.Settings):
		b.patch(w, r, part)
	case r.Method == http.MethodPost && part == bmcReset:
		b.reset(w, r)
	default:
		refuse(w, http.StatusMethodNotAllowed, "Base.1.12.OperationNotAllowed", r.Method+" is not for "+path+".")
	}
}

func (b *BMC) resets() []string {
	if len(b.ResetTypes) > 0 {
		return b.ResetTypes
	}
	return []string{"On", "ForceOff", "GracefulShutdown", "GracefulRestart", "ForceRestart", "Nmi"}
}

func (b *BMC) bootObject(o Override) object {
	v := object{"BootSourceOverrideTarget": o.Target, "BootSourceOverrideEnabled": o.Enabled}
	if !b.NoMode {
		v["BootSourceOverrideMode"] = o.Mode
	}
	if !b.NoAllowable {
		v["BootSourceOverrideTarget@Redfish.AllowableValues"] = []string{"None", b.pxe(), "Hdd", "BiosSetup"}
	}
	return v
}

func (b *BMC) pxe() string { return map[bool]string{true: "PXE", false: "Pxe"}[b.UpperPXE] }

// system is the machine as it is seen.
func (b *BMC) system(id string) object {
	if b.unseen > 0 {
		b.unseen--
		return b.shown
	}
	at := bmcSystems + "/" + id
	reset := object{"target": at + bmcReset}
	switch {
	case b.ActionInfo:
		reset["@Redfish.ActionInfo"] = at + bmcInfo
	case !b.NoAllowable:
		reset["ResetType@Redfish.AllowableValues"] = b.resets()
	}
	v := object{
		"@odata.id": at, "Id": id, "Name": "System", "SerialNumber": "S1", "UUID": "37333036-3831-5a43-0001-303538304a31",
		"PowerState": map[bool]string{true: "On", false: "Off"}[b.on], "Boot": b.bootObject(b.boot),
		"Actions": object{"#ComputerSystem.Reset": reset},
	}
	if b.Settings != "" && !b.Undeclared {
		v["@Redfish.Settings"] = object{"SettingsObject": object{"@odata.id": at + "/" + b.Settings}}
	}
	return v
}

// change is called before something changes that is seen Slow readings later.
func (b *BMC) change() {
	b.unseen = 0
	b.shown = b.system(b.IDs[0])
	b.unseen = b.Slow
	b.version++
}

// tags returns the entity tags of the header, of the body, and the one that matches.
func (b *BMC) tags() (header, body, matches string) {
	tag := fmt.Sprintf("%q", fmt.Sprint("v", b.version))
	switch b.Tags {
	case NoTags:
		return "", "", ""
	case BodyTags:
		return "", tag, tag
	case WeakTags:
		return "W/" + tag, "W/" + tag, "W/" + tag
	case StrongTags:
		return "W/" + tag, "W/" + tag, tag
	case QuotedTags:
		return `"` + tag + `"`, tag, tag
	case RefusedTags:
		return tag, tag, "none"
	}
	return tag, "", tag
}

func (b *BMC) send(w http.ResponseWriter, v object) {
	header, body, _ := b.tags()
	if header != "" {
		w.Header().Set("ETag", header)
	}
	if v = maps.Clone(v); body != "" {
		v["@odata.etag"] = body
	}
	writeJSON(w, http.StatusOK, v)
}

// refuse answers as Redfish does.
func refuse(w http.ResponseWriter, code int, id, text string) {
	writeJSON(w, code, object{"error": object{"code": "Base.1.12.GeneralError", "message": "See the messages.", "@Message.ExtendedInfo": []object{
		{"MessageId": id, "Message": text, "Severity": "Critical", "Resolution": "None."},
	}}})
}
