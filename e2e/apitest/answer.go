package apitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, query := r.URL.Path, r.URL.Query()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	var sent Object
	if len(body) > 0 && json.Unmarshal(body, &sent) != nil {
		sent = nil // of another encoding
	}
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.RequestURI())
	s.bodies[r.Method+" "+path] = append(s.bodies[r.Method+" "+path], sent)
	before := s.before
	s.mu.Unlock()
	if before != nil {
		if p := before(r.Method, path); p != nil {
			refuse(w, *p)
			return
		}
	}
	if query.Get("watch") != "" {
		s.watch(w, r)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	dry := query.Get("dryRun") == "All"
	subresource := ""
	for _, name := range []string{"status", "eviction"} {
		if rest, ok := strings.CutSuffix(path, "/"+name); ok {
			path, subresource = rest, name
		}
	}
	kind, collection := s.kinds[path[strings.LastIndexByte(path, '/')+1:]]
	switch {
	case r.Method == http.MethodGet && collection:
		send(w, 200, Object{"kind": kind + "List", "apiVersion": version(path), "metadata": Object{"resourceVersion": fmt.Sprint(s.version)}, "items": s.list(path, query.Get("fieldSelector"))})
	case r.Method == http.MethodPost && collection:
		s.create(w, path, sent)
	case r.Method == http.MethodPatch && r.Header.Get("Content-Type") != "application/merge-patch+json":
		s.apply(w, path, subresource, sent, dry)
	case s.objects[path] == nil:
		refuse(w, Problem{404, "NotFound", path + " not found"})
	case r.Method == http.MethodGet:
		send(w, 200, s.objects[path])
	case r.Method == http.MethodPatch:
		s.merge(w, path, sent, dry)
	case r.Method == http.MethodDelete:
		s.remove(w, path, sent, body)
	case r.Method == http.MethodPost && subresource == "eviction":
		options, _ := sent["deleteOptions"].(Object)
		s.remove(w, path, options, body)
	default:
		refuse(w, Problem{405, "MethodNotAllowed", r.Method})
	}
}

func version(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if parts[0] == "api" {
		return parts[1]
	}
	return parts[1] + "/" + parts[2]
}

func send(w http.ResponseWriter, code int, o Object) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(o) // the client may have gone
}

func refuse(w http.ResponseWriter, p Problem) {
	send(w, p.Code, Object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": p.Code, "reason": p.Reason, "message": p.Message})
}

func (s *Server) create(w http.ResponseWriter, collection string, o Object) {
	path := collection + "/" + Text(o, "metadata", "name")
	if s.objects[path] != nil {
		refuse(w, Problem{409, "AlreadyExists", path})
		return
	}
	if o == nil { // of another encoding: only that it was made counts
		o, path = Object{}, fmt.Sprintf("%s/unread-%d", collection, s.version)
	}
	s.put(path, copied(o))
	send(w, 201, s.objects[path])
}

// conflict reports whether metadata or preconditions are about another object than the one there,
// or another version of it, and then refuses the request.
func (s *Server) conflict(w http.ResponseWriter, path string, wanted Object) bool {
	for _, key := range []string{"uid", "resourceVersion"} {
		want, _ := wanted[key].(string)
		has := Text(s.objects[path], "metadata", key)
		if want != "" && want != has {
			refuse(w, Problem{409, "Conflict", fmt.Sprintf("the %s in the precondition (%s) does not match (%s)", key, want, has)})
			return true
		}
	}
	return false
}

func (s *Server) apply(w http.ResponseWriter, path, subresource string, sent Object, dry bool) {
	if s.objects[path] == nil && subresource != "" {
		refuse(w, Problem{404, "NotFound", path + " not found"})
		return
	}
	if s.conflict(w, path, meta(sent)) {
		return
	}
	if subresource != "" {
		sent = Object{subresource: sent[subresource]}
	}
	s.store(w, path, sent, dry)
}

func (s *Server) merge(w http.ResponseWriter, path string, sent Object, dry bool) {
	if !s.conflict(w, path, meta(sent)) {
		s.store(w, path, sent, dry)
	}
}

// store merges what was sent into an object.
func (s *Server) store(w http.ResponseWriter, path string, sent Object, dry bool) {
	o := copied(s.objects[path])
	join(o, sent)
	if dry {
		send(w, 200, o)
		return
	}
	s.put(path, o)
	send(w, 200, s.objects[path])
}

// join merges as RFC 7386 does: null removes a key.
func join(o, sent Object) {
	for key, v := range sent {
		into, _ := o[key].(Object)
		switch v := v.(type) {
		case nil:
			delete(o, key)
		case Object:
			if into == nil {
				into = Object{}
				o[key] = into
			}
			join(into, v)
		default:
			o[key] = v
		}
	}
}

// remove deletes an object. Of a body that is no JSON only the UID counts.
func (s *Server) remove(w http.ResponseWriter, path string, options Object, body []byte) {
	wanted, _ := options["preconditions"].(Object)
	if options == nil && len(body) > 0 && !bytes.Contains(body, []byte(Text(s.objects[path], "metadata", "uid"))) {
		wanted = Object{"uid": "another"}
	}
	if s.conflict(w, path, wanted) {
		return
	}
	s.drop(path)
	send(w, 200, Object{"kind": "Status", "apiVersion": "v1", "status": "Success"})
}

// watch sends the events of a collection after a version.
func (s *Server) watch(w http.ResponseWriter, r *http.Request) {
	after, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(200)
	for n := 0; ; {
		s.mu.Lock()
		changed, events := s.changed, s.events[n:]
		n = len(s.events)
		s.mu.Unlock()
		for _, e := range events {
			if e.version > after && inCollection(e.path, r.URL.Path) {
				_ = json.NewEncoder(w).Encode(Object{"type": e.kind, "object": e.object}) // ends below
			}
		}
		w.(http.Flusher).Flush()
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}
