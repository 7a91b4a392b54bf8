package httpboot

import (
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"drover/httpboot/queue"
	"drover/httpboot/script"
	"drover/internal/lograte"
	"drover/pools"
)

// Request describes a request that has ended, for [Server.OnRequest].
type Request struct {
	Method string
	Route  string    // the pattern that matched, "GET /boot/{mac}"; empty if none did
	Path   string    // as the client sent it, unescaped
	MAC    pools.MAC // of the client's machine, if known
	Pool   string    // likewise
	Node   string    // likewise
	Status int       // of the answer; 200 even if the client disconnected before its end
	Bytes  int64     // of the answer's body
	Took   time.Duration
	Remote string // address of the client
	Err    error  // the reason why the request was refused or cut off; may be nil

	Admitted bool          // it was for a root image, and got its turn
	Position int           // the first position in the queue for images; 0: it did not wait
	Waited   time.Duration // the time in that queue, over all requests for this transfer
}

// handler is a running Server.
type handler struct {
	server *Server
	Limits
	mux     *http.ServeMux
	events  eventCounter
	joins   sync.Map // MACs whose join is running
	queue   *queue.Queue
	sending atomic.Int32     // current transfers, see sendFile
	lines   *lograte.Limiter // of log lines
	steps   *lograte.Limiter // of those of a boot's steps
	budget  lograte.Budget   // of those of declared machines
	running running
	drained atomic.Pointer[time.Time] // when the grace of [Server.Drain] ends; nil: it was not called
}

// Handler returns the handler of all endpoints.
func (s *Server) Handler() http.Handler { return s.handler() }

func (s *Server) handler() *handler {
	h := &handler{server: s, Limits: s.withDefaults(), mux: http.NewServeMux(),
		lines: &lograte.Limiter{Log: s.Log, PerSecond: maxLines}, steps: &lograte.Limiter{Log: s.Log, PerSecond: maxSteps}}
	h.queue = queue.New(h.MaxImages, s.OnQueue)
	h.route("GET /boot.ipxe", h.serveFinder)
	h.route("GET "+pools.ScriptPath+"{mac}", h.serveScript)
	h.route("HEAD "+pools.ScriptPath+"{mac}", h.refuseHead) // the pattern with GET would match HEAD as well
	h.route("GET "+pools.ImagePath+"{name}/{generation}/{file}", h.serveImage)
	h.route("GET "+pools.LoaderPath+"{file...}", h.serveFile(""))
	h.route("GET /{file}", h.serveFile("")) // shim requests GRUB from its own directory
	h.route("GET /grub/{file...}", h.serveFile("grub/"))
	h.route("POST "+pools.NodePath+"{mac}/config", h.serveConfig)
	h.route("POST "+pools.NodePath+"{mac}/join", h.serveJoin)
	h.route("POST "+pools.NodePath+"{mac}/events", h.serveEvent)
	h.route("POST "+pools.NodePath+"{mac}/inventory", h.serveInventory)
	if s.Peers != nil {
		h.route("POST "+pools.PeersPath, h.servePeer)
	}
	return h
}

// route registers a handler that returns its error instead of writing it.
func (h *handler) route(pattern string, f func(*recorder, *http.Request) error) {
	h.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		rec := w.(*recorder) // ServeHTTP made it
		err := f(rec, r)
		if err == nil {
			return
		}
		if e, ok := errors.AsType[*script.Error](err); ok {
			if rec.MAC.IsZero() {
				rec.MAC, rec.Node = e.MAC, e.Node
			}
			err = scriptError(e)
		}
		rec.Err = err
		if rec.Status == 0 {
			writeError(rec, err)
		}
	})
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rec := &recorder{ResponseWriter: w, stall: h.StallTimeout, start: time.Now()}
	rec.Method, rec.Path, rec.Remote = r.Method, r.URL.Path, addrOf(r.RemoteAddr).String()
	defer func() { h.done(r.Context(), rec) }()
	if r.ContentLength != 0 {
		// Also for a GET with a body, since net/http reads the rest of it.
		rec.limitBody(r, h.BodyTimeout)
	}
	if len(r.TransferEncoding) > 0 {
		// net/http hides whether there was a Content-Length, too. Then a proxy can take what follows for
		// the body (RFC 9112, section 6.1). No firmware sends one without.
		rec.Header().Set("Connection", "close")
	}
	over := requested(r)
	if !h.serves(addrOf(r.RemoteAddr)) {
		rec.Err = refuseFor(RefusedNetwork, http.StatusForbidden, "this network is not served")
		rec.Header().Set("Connection", "close")
		writeError(rec, rec.Err)
		return
	}
	clean, ok := cleanPath(r)
	if !ok || r.TLS != nil && !strings.HasPrefix(clean.URL.Path, pools.NodePath) {
		rec.Err = refuseFor(RefusedPath, http.StatusNotFound, "no such path")
	} else {
		rec.Err = tooMany(over, clean)
	}
	if over != "" {
		rec.Header().Set("Connection", "close") // to make room
	}
	if rec.Err != nil {
		writeError(rec, rec.Err)
		return
	}
	defer func() { rec.Route = clean.Pattern }()
	sanitizeRange(clean)
	h.mux.ServeHTTP(rec, clean)
}

// serves reports whether a client gets more than a refusal.
func (h *handler) serves(addr netip.Addr) bool {
	return h.server.Clients == nil || h.server.Clients.Serves(addr)
}

// tooMany refuses a request of a connection above a limit. Above the limit of the server,
// firmware still gets its files: after a refusal it would boot from another device.
func tooMany(over Refusal, r *http.Request) error {
	switch over {
	case RefusedAddressConns:
		return &httpError{Code: http.StatusTooManyRequests, Reason: over, RetryAfter: 5 * time.Second,
			Msg: "your address has too many connections: ask again in 5s"}
	case RefusedConns:
		if r.Method == http.MethodPost || strings.HasSuffix(r.URL.Path, "/"+script.SquashfsFile) {
			return &httpError{Code: http.StatusServiceUnavailable, Reason: over, RetryAfter: 5 * time.Second,
				Msg: "the server has too many connections: ask again in 5s"}
		}
	}
	return nil
}

// cleanPath returns r without repeated slashes in its path: shim requests
// "//grubx64.efi", and firmware follows no redirects. It refuses paths with dot segments
// in any encoding: no loader sends them.
func cleanPath(r *http.Request) (*http.Request, bool) {
	escaped := r.URL.EscapedPath()
	for strings.Contains(escaped, "//") {
		escaped = strings.ReplaceAll(escaped, "//", "/")
	}
	path, err := url.PathUnescape(escaped)
	if err != nil || !strings.HasPrefix(path, "/") || strings.ContainsAny(path, "\x00\\") {
		return nil, false
	}
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || segment == ".." {
			return nil, false
		}
	}
	u := *r.URL
	u.Path, u.RawPath = path, escaped
	r2 := *r
	r2.URL = &u
	return &r2, true
}
