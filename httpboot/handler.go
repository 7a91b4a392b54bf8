package httpboot

import (
	"log/slog"
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
	Status int       // what was answered; 200 also when the client left in the middle
	Bytes  int64     // of the answer's body
	Took   time.Duration
	Remote string // address of the client
	Err    error  // why the request was refused or cut short
}

// handler is a Server at work.
type handler struct {
	*Server
	Limits
	*scripter
	mux    *http.ServeMux
	events eventCounter
	joins  gate
}

// Handler returns the handler of all endpoints.
func (s *Server) Handler() http.Handler {
	h := &handler{Server: s, Limits: s.withDefaults(), mux: http.NewServeMux()}
	var err error
	if h.scripter, err = s.scripter(); err != nil {
		// Serve refuses to start. Every script would send nodes to nowhere.
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		})
	}
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
	clean, ok := cleaned(r)
	if !ok {
		rec.err = refuse(http.StatusNotFound, "no such path")
		writeError(rec, rec.err)
		return
	}
	defer func() { rec.route = clean.Pattern }()
	h.mux.ServeHTTP(rec, clean)
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
	if err != nil || !strings.HasPrefix(path, "/") || strings.ContainsRune(path, 0) {
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

// maxLoggedPath bounds the path in the log, in bytes.
const maxLoggedPath = 256

// done writes the log line of a request and calls the hook.
func (h *handler) done(rec *recorder, r *http.Request, took time.Duration) {
	req := Request{
		Method: r.Method, Route: rec.route, Path: r.URL.Path, MAC: rec.mac, Pool: rec.pool,
		Status: rec.status, Bytes: rec.bytes, Took: took, Remote: addrOf(r.RemoteAddr).String(), Err: rec.err,
	}
	if req.Status == 0 {
		req.Status = http.StatusOK // a handler that wrote nothing
	}
	level := slog.LevelInfo
	switch {
	case req.Status >= 500:
		level = slog.LevelError
	case req.Status == http.StatusForbidden, req.Status == http.StatusTooManyRequests, rec.problem:
		level = slog.LevelWarn
	}
	attrs := []slog.Attr{
		slog.String("method", r.Method), slog.String("path", cut(req.Path, maxLoggedPath)), slog.Int("status", req.Status),
		slog.Int64("bytes", req.Bytes), slog.Duration("took", took), slog.String("addr", req.Remote),
	}
	if !rec.mac.IsZero() {
		attrs = append(attrs, slog.String("mac", rec.mac.String()), slog.String("pool", rec.pool))
	}
	if rec.err != nil {
		attrs = append(attrs, slog.String("err", rec.err.Error()))
	}
	h.Log.LogAttrs(r.Context(), level, "request", attrs...)
	if h.OnRequest != nil {
		h.OnRequest(req)
	}
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
