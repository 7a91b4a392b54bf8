// Package apitest has an API server in memory for the tests of packages that talk to clusters. It
// keeps objects of any kind by their paths, and answers reads, lists, watches, merge patches,
// server-side applies, deletions and evictions with the codes and preconditions of Kubernetes. It
// knows no schemas, rights or defaults.
package apitest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Object is an object as JSON has it.
type Object = map[string]any

// Server is an API server.
type Server struct {
	*httptest.Server
	t testing.TB

	mu       sync.Mutex
	version  int
	objects  map[string]Object // by path: /api/v1/nodes/m1
	events   []event
	changed  chan struct{}                      // closed at the next event
	before   func(method, path string) *Problem // see [Server.Before]
	requests []string                           // METHOD PATH?QUERY
	kinds    map[string]string                  // of collections, by the last element of their paths
	bodies   map[string][]Object                // of writes, by METHOD PATH
}

type event struct {
	version int
	kind    string
	path    string
	object  Object
}

// Problem is an answer that refuses a request.
type Problem struct {
	Code            int
	Reason, Message string
}

// New starts a server without objects. kinds has the kind of each resource that is listed:
// "pods": "Pod".
func New(t testing.TB, kinds map[string]string) *Server {
	t.Helper()
	s := &Server{t: t, objects: map[string]Object{}, changed: make(chan struct{}), kinds: kinds, bodies: map[string][]Object{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() {
		s.CloseClientConnections() // watches
		s.Close()
	})
	return s
}

// Kubeconfig writes a kubeconfig for the server and returns its path.
func (s *Server) Kubeconfig() string {
	path := filepath.Join(s.t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "clusters": [{"name": "c", "cluster": {"server": %q}}],
"users": [{"name": "u", "user": {"token": "a-token-of-the-test"}}], "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}], "current-context": "x"}`, s.URL)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// Put stores an object as another client would, with a UID unless it has one.
func (s *Server) Put(path string, o Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(path, copied(o))
}

// Edit changes an object as another client would. It is one without fields if there is none.
func (s *Server) Edit(path string, edit func(Object)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := copied(s.objects[path])
	edit(o)
	s.put(path, o)
}

// Drop removes an object.
func (s *Server) Drop(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(path)
}

// Get returns a copy of an object; nil if there is none.
func (s *Server) Get(path string) Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.objects[path]; o != nil {
		return copied(o)
	}
	return nil
}

// Before has a function called before each request is answered. Unless it returns nil, the request
// is refused. It may change objects.
func (s *Server) Before(f func(method, path string) *Problem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = f
}

// Requests returns the requests so far whose text, METHOD PATH?QUERY, contains a part.
func (s *Server) Requests(part string) (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		if strings.Contains(r, part) {
			all = append(all, r)
		}
	}
	return all
}

// Bodies returns what was sent with the requests METHOD PATH.
func (s *Server) Bodies(request string) []Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.bodies[request])
}

// Text returns the text at the keys of an object; empty if there is none.
func Text(o Object, keys ...string) string {
	for i, key := range keys {
		if i == len(keys)-1 {
			text, _ := o[key].(string)
			return text
		}
		o, _ = o[key].(Object)
	}
	return ""
}

func copied(o Object) Object {
	if o == nil {
		return Object{}
	}
	text, err := json.Marshal(o)
	c := Object{}
	if err = errors.Join(err, json.Unmarshal(text, &c)); err != nil {
		panic(err)
	}
	return c
}

// meta returns the metadata of an object, and makes them.
func meta(o Object) Object {
	m, _ := o["metadata"].(Object)
	if m == nil {
		m = Object{}
		o["metadata"] = m
	}
	return m
}

// put stores an object with its next version and generation. s.mu is held.
func (s *Server) put(path string, o Object) {
	before, m := s.objects[path], meta(o)
	s.version++
	m["resourceVersion"] = fmt.Sprint(s.version)
	if m["uid"] == nil {
		m["uid"] = fmt.Sprintf("uid-%d", s.version)
	}
	if m["name"] == nil {
		m["name"] = path[strings.LastIndexByte(path, '/')+1:]
	}
	generation := 1.0
	if before != nil && meta(before)["uid"] == m["uid"] {
		generation, _ = meta(before)["generation"].(float64)
		if fmt.Sprint(before["spec"]) != fmt.Sprint(o["spec"]) {
			generation++
		}
	}
	m["generation"] = generation
	kind := "MODIFIED"
	if before == nil {
		kind = "ADDED"
	}
	s.objects[path] = o
	s.tell(kind, path, o)
}

func (s *Server) drop(path string) {
	if o := s.objects[path]; o != nil {
		delete(s.objects, path)
		s.version++
		o = copied(o)
		meta(o)["resourceVersion"] = fmt.Sprint(s.version)
		s.tell("DELETED", path, o)
	}
}

func (s *Server) tell(kind, path string, o Object) {
	s.events = append(s.events, event{s.version, kind, path, copied(o)})
	close(s.changed)
	s.changed = make(chan struct{})
}

// inCollection reports whether an object is in a collection, which may be one of all namespaces.
func inCollection(path, collection string) bool {
	dir := path[:strings.LastIndexByte(path, '/')]
	if dir == collection {
		return true
	}
	group, plural := collection[:strings.LastIndexByte(collection, '/')], collection[strings.LastIndexByte(collection, '/'):]
	return strings.HasPrefix(dir, group+"/namespaces/") && strings.HasSuffix(dir, plural)
}

// list returns the objects of a collection, sorted by path. s.mu is held.
func (s *Server) list(collection, fields string) (items []any) {
	items = []any{}
	for _, path := range slices.Sorted(maps.Keys(s.objects)) {
		if inCollection(path, collection) && selected(s.objects[path], fields) {
			items = append(items, s.objects[path])
		}
	}
	return items
}

// selected reports whether an object has the fields of a selector.
func selected(o Object, fields string) bool {
	for term := range strings.SplitSeq(fields, ",") {
		if path, value, ok := strings.Cut(term, "="); ok && Text(o, strings.Split(path, ".")...) != value {
			return false
		}
	}
	return true
}
