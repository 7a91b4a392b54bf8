package kube_test

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/cluster-bootstrap/token/jws"
	"sigs.k8s.io/yaml"

	"drover/kube/approve"
)

// apiServer simulates the part of an API server that drover uses. It signs tokens at
// once.
type apiServer struct {
	*httptest.Server
	t testing.TB

	mu       sync.Mutex
	refuse   map[string]http.HandlerFunc // by method and resource: "POST secrets"
	requests map[string]int              // same keys
	secrets  map[string]*corev1.Secret   // by name
	minted   []string                    // the secret halves of all tokens
	deleted  []string                    // names of secrets

	deletedNodes []string // UIDs
	onPatch      func()   // before the patch of a Node is handled
	nodes        map[string]corev1.Node
	leases       map[string]string               // versions
	leaseSeconds int32                           // their duration, unless it is 0
	records      map[string]coordinationv1.Lease // of used tokens, by name
	changed      chan struct{}                   // closed when a node changes
	patches      []string                        // bodies
	requested    []certificatesv1.CertificateSigningRequest
	unsigned     bool
	info         string            // the kubeconfig of cluster-info
	signatures   map[string]string // of info, by token ID and text

	watches map[string]int           // open ones, by path
	kept    map[string]corev1.Secret // readable Secrets, as in an admin cluster
	pods    map[string]corev1.Pod    // by name
	held    map[string]bool          // pods that a budget holds
	evicted []string
}

func newAPIServer(t testing.TB) *apiServer {
	s := &apiServer{
		t: t, refuse: map[string]http.HandlerFunc{}, requests: map[string]int{}, secrets: map[string]*corev1.Secret{},
		nodes: map[string]corev1.Node{}, leases: map[string]string{}, records: map[string]coordinationv1.Lease{}, changed: make(chan struct{}),
		watches: map[string]int{}, kept: map[string]corev1.Secret{}, pods: map[string]corev1.Pod{}, held: map[string]bool{},
		signatures: map[string]string{},
	}
	s.Server = httptest.NewUnstartedServer(s)
	s.EnableHTTP2 = true // as API servers do: the server notices the end of a request
	s.StartTLS()
	t.Cleanup(func() {
		s.CloseClientConnections() // watches
		s.Close()
	})
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	s.info = kubeconfig(t, "", s.URL, ca, "")
	return s
}

// kubeconfig returns a kubeconfig with one cluster, and a user if there is a token.
func kubeconfig(t testing.TB, name, server string, ca []byte, token string) string {
	type object map[string]any
	conf := object{"apiVersion": "v1", "kind": "Config", "clusters": []object{{"name": name, "cluster": object{"server": server, "certificate-authority-data": ca}}}}
	if token != "" {
		conf["users"] = []object{{"name": "u", "user": object{"token": token}}}
		conf["contexts"] = []object{{"name": "c", "context": object{"cluster": name, "user": "u"}}}
		conf["current-context"] = "c"
	}
	text, err := yaml.Marshal(conf)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// ca returns the server's certificate in PEM.
func (s *apiServer) ca() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

// kubeconfig writes a kubeconfig for the server and returns its path.
func (s *apiServer) kubeconfig() string {
	path := filepath.Join(s.t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, []byte(kubeconfig(s.t, "c", s.URL, []byte(s.ca()), "the-servers-own-credential")), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(strings.Trim(r.URL.Path, "/"), "apis/coordination.k8s.io/")
	path = strings.TrimPrefix(path, "apis/certificates.k8s.io/")
	parts := strings.Split(strings.TrimPrefix(path, "api/"), "/") // v1 namespaces NS RESOURCE NAME, or v1 nodes NAME
	resource, name := parts[1], ""
	if resource == "namespaces" {
		if resource, parts = parts[3], parts[2:]; parts[0] == approve.UsedNamespace {
			resource = "records"
		}
	}
	if len(parts) > 2 {
		name = parts[2]
	}
	key := r.Method + " " + resource
	if r.URL.Query().Get("watch") != "" {
		key = "WATCH " + resource
	}
	s.mu.Lock()
	s.requests[key]++
	refuse := s.refuse[key]
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if refuse != nil {
		refuse(w, r)
		return
	}
	switch key {
	case "GET configmaps":
		s.send(w, 200, s.clusterInfo())
	case "POST secrets":
		s.create(w, r)
	case "DELETE secrets":
		s.mu.Lock()
		s.deleted = append(s.deleted, name)
		s.mu.Unlock()
		s.send(w, 200, metav1.Status{Status: metav1.StatusSuccess})
	case "GET nodes":
		s.getNodes(w, name, r.URL.Query().Get("labelSelector"))
	case "POST records":
		s.createRecord(w, r)
	case "GET records":
		s.getRecords(w, name)
	case "DELETE records":
		s.deleteRecord(w, r, name)
	case "GET leases":
		s.getLease(w, name)
	case "DELETE nodes":
		s.deleteNode(w, r, name)
	case "WATCH nodes":
		s.watch(w, r, s.eachNode)
	case "PATCH nodes":
		s.patchNode(w, r, name)
	case "GET secrets":
		s.getSecrets(w, r)
	case "WATCH secrets":
		s.watch(w, r, s.eachSecret(r))
	case "GET pods":
		s.getPods(w, r)
	case "POST pods":
		s.evict(w, r, name)
	case "GET certificatesigningrequests":
		s.getRequests(w, name, r.URL.Query().Get("fieldSelector"))
	case "WATCH certificatesigningrequests":
		s.watch(w, r, s.eachRequest(r.URL.Query().Get("fieldSelector")))
	case "PUT certificatesigningrequests":
		s.putRequest(w, r, name)
	default:
		s.t.Errorf("drover asked for %s %s", key, r.URL)
		fail(404, "NotFound", "no such thing")(w, r)
	}
}

func (s *apiServer) send(w http.ResponseWriter, code int, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		s.t.Error(err)
	}
	w.WriteHeader(code)
	_, _ = w.Write(append(text, '\n'))
}

func (s *apiServer) clusterInfo() corev1.ConfigMap {
	s.mu.Lock()
	defer s.mu.Unlock()
	data := map[string]string{"kubeconfig": s.info}
	for _, secret := range s.secrets {
		id := secret.StringData["token-id"]
		key := id + s.info
		if _, ok := s.signatures[key]; !ok {
			sig, err := jws.ComputeDetachedSignature(s.info, id, secret.StringData["token-secret"])
			if err != nil {
				s.t.Error(err)
			}
			s.signatures[key] = sig
		}
		if !s.unsigned {
			data["jws-kubeconfig-"+id] = s.signatures[key]
		}
	}
	return corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "cluster-info", Namespace: "kube-public"}, Data: data}
}

func (s *apiServer) create(w http.ResponseWriter, r *http.Request) {
	secret := decodeSecret(s.t, r)
	s.mu.Lock()
	s.secrets[secret.Name] = secret
	s.minted = append(s.minted, secret.StringData["token-secret"])
	s.mu.Unlock()
	s.send(w, 201, secret)
}

// decodeSecret reads the body of a request, in any encoding of client-go.
func decodeSecret(t testing.TB, r *http.Request) *corev1.Secret {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		t.Errorf("body of a new Secret: %v", err)
		return new(corev1.Secret)
	}
	return object.(*corev1.Secret)
}

// watch sends all objects of list, and the deletion of objects that have left it, after
// each change.
func (s *apiServer) watch(w http.ResponseWriter, r *http.Request, list iter.Seq[metav1.Object]) {
	count := func(n int) { s.mu.Lock(); defer s.mu.Unlock(); s.watches[r.URL.Path] += n }
	count(1)
	defer count(-1)
	send := func(event string, object metav1.Object) {
		text, _ := json.Marshal(object)
		fmt.Fprintf(w, "{\"type\":%q,\"object\":%s}\n", event, text)
	}
	w.WriteHeader(200)
	for sent := map[string]metav1.Object{}; ; {
		s.mu.Lock()
		changed, gone := s.changed, maps.Clone(sent)
		for object := range list {
			send("MODIFIED", object)
			sent[object.GetName()] = object
			delete(gone, object.GetName())
		}
		for name, object := range gone {
			send("DELETED", object)
			delete(sent, name)
		}
		s.mu.Unlock()
		w.(http.Flusher).Flush()
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

func (s *apiServer) getLease(w http.ResponseWriter, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if version, ok := s.leases[name]; ok {
		lease := coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}}
		if s.leaseSeconds > 0 {
			lease.Spec.LeaseDurationSeconds = &s.leaseSeconds
		}
		s.send(w, 200, lease)
		return
	}
	fail(404, "NotFound", "leases not found")(w, nil)
}

func merge(object, patch map[string]any) {
	for k, v := range patch {
		into, _ := object[k].(map[string]any)
		switch v := v.(type) {
		case nil:
			delete(object, k)
		case map[string]any:
			if into == nil {
				into = map[string]any{}
				object[k] = into
			}
			merge(into, v)
		default:
			object[k] = v
		}
	}
}

// node returns a Node as it is.
func (s *apiServer) node(name string) corev1.Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nodes[name]
}

func (s *apiServer) count(key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[key]
}

// set replaces the handler of requests with that key.
func (s *apiServer) set(key string, h http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse[key] = h
}

// fail returns a handler that refuses requests as an API server does.
func fail(code int32, reason metav1.StatusReason, message string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(int(code))
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
			Status:   metav1.StatusFailure, Code: code, Reason: reason, Message: message,
		})
	}
}
