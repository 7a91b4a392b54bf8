package httpboot

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"drover/pools"
)

// Request is what [Server.OnRequest] is told of a request that has ended.
type Request struct {
	Method string
	Route  string    // the pattern that matched, "GET /boot/{mac}"; empty when none did
	Path   string    // as the client sent it, unescaped
	MAC    pools.MAC // of the machine that asked, when it is known
	Pool   string    // likewise
	Node   string    // likewise
	Status int       // what was answered; 200 also when the client left in the middle
	Bytes  int64     // of the answer's body
	Took   time.Duration
	Remote string // address of the client
	Err    error  // why the request was refused or cut short

	Admitted bool          // it was a root image's, and had its turn
	Place    int           // its first place in the queue for images; 0 when nobody was before it
	Waited   time.Duration // in that queue, over all requests for this transfer
}

// handler is a Server at work.
type handler struct {
	*Server
	Limits
	*scripter
	mux    *http.ServeMux
	events eventCounter
	joins  gate
	queue  *queue
	loud   throttle
}

// Handler returns the handler of all endpoints.
func (s *Server) Handler() http.Handler {
	h, err := s.handler()
	if err != nil {
		// Serve refuses to start. Every script would send nodes to nowhere.
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		})
	}
	return h
}

func (s *Server) handler() (*handler, error) {
	scripts, err := s.scripter()
	if err != nil {
		return nil, err
	}
	h := &handler{Server: s, Limits: s.withDefaults(), scripter: scripts, mux: http.NewServeMux()}
	h.queue = newQueue(h.MaxImages, s.OnQueue)
	h.events.max = h.MaxEvents
	h.route("GET /boot.ipxe", h.serveFinder)
	h.route("GET "+pools.ScriptPath+"{mac}", h.serveScript)
	h.route("HEAD "+pools.ScriptPath+"{mac}", h.refuseHead) // the pattern with GET would take HEAD as well
	h.route("GET "+pools.ImagePath+"{name}/{generation}/{file}", h.serveImage)
	h.route("GET "+pools.LoaderPath+"{file}", h.serveLoader)
	h.route("GET /{file}", h.serveLoader) // shim asks for GRUB beside itself, wherever that is
	h.route("GET /grub/{file...}", h.serveGRUB)
	h.route("POST "+pools.NodePath+"{mac}/config", h.serveConfig)
	h.route("POST "+pools.NodePath+"{mac}/join", h.serveJoin)
	h.route("POST "+pools.NodePath+"{mac}/events", h.serveEvent)
	return h, nil
}

// route registers a handler that returns its error instead of writing it.
func (h *handler) route(pattern string, f func(*recorder, *http.Request) error) {
	h.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		rec := w.(*recorder) // ServeHTTP made it
		err := f(rec, r)
		if err == nil {
			return
		}
		rec.err = err
		if rec.status == 0 {
			writeError(rec, err)
		}
	})
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rec := newRecorder(w, h.StallTimeout)
	start := time.Now()
	defer func() { h.done(rec, r, time.Since(start)) }()
	if r.ContentLength != 0 {
		// Also for a GET with a body: net/http reads what the handler left.
		rec.limitBody(r, h.BodyTimeout)
	}
	over := handling(r)
	clean, ok := cleaned(r)
	if !ok || r.TLS != nil && !strings.HasPrefix(clean.URL.Path, pools.NodePath) {
		rec.err = refuseFor(RefusedPath, http.StatusNotFound, "no such path")
	} else {
		rec.err = tooMany(over, clean)
	}
	if over != "" {
		rec.Header().Set("Connection", "close") // to make room
	}
	if rec.err != nil {
		writeError(rec, rec.err)
		return
	}
	defer func() { rec.route = clean.Pattern }()
	h.mux.ServeHTTP(rec, clean)
}

// tooMany refuses a request of a connection that is one too many. When it is
// the server that has too many, firmware still gets its files: refused, it would
// boot from somewhere else.
func tooMany(over Refusal, r *http.Request) error {
	switch over {
	case RefusedAddressConns:
		return &HTTPError{Code: http.StatusTooManyRequests, Reason: over, RetryAfter: 5 * time.Second,
			Msg: "your address has too many connections: ask again in 5s"}
	case RefusedConns:
		if r.Method == http.MethodPost || strings.HasSuffix(r.URL.Path, "/"+squashfsFile) {
			return &HTTPError{Code: http.StatusServiceUnavailable, Reason: over, RetryAfter: 5 * time.Second,
				Msg: "the server has too many connections: ask again in 5s"}
		}
	}
	return nil
}

// cleaned returns r with repeated slashes of its path made one: shim asks for
// "//grubx64.efi", and a redirect is more than firmware follows. Paths with
// dot segments are refused, however they are encoded: no loader sends them.
func cleaned(r *http.Request) (*http.Request, bool) {
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

// gate lets one request of a machine through at a time.
type gate struct {
	mu   sync.Mutex
	busy map[pools.MAC]bool
}

// enter returns false when a request of mac is inside already; else leave must
// be called.
func (g *gate) enter(mac pools.MAC) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.busy[mac] {
		return false
	}
	if g.busy == nil {
		g.busy = map[pools.MAC]bool{}
	}
	g.busy[mac] = true
	return true
}

func (g *gate) leave(mac pools.MAC) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.busy, mac)
}
