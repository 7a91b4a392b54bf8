package kube_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func (s *apiServer) getNodes(w http.ResponseWriter, name, label string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name == "" {
		list := corev1.NodeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
		for _, n := range s.nodes {
			if _, ok := n.Labels[label]; ok || label == "" {
				list.Items = append(list.Items, n)
			}
		}
		s.send(w, 200, list)
		return
	}
	if n, ok := s.nodes[name]; ok {
		s.send(w, 200, n)
		return
	}
	fail(404, "NotFound", "nodes not found")(w, nil)
}

func (s *apiServer) eachNode(yield func(metav1.Object) bool) {
	for _, n := range s.nodes {
		if !yield(&n) {
			return
		}
	}
}

func (s *apiServer) deleteNode(w http.ResponseWriter, r *http.Request, name string) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	n, ok := s.nodes[name]
	switch {
	case !ok:
		fail(404, "NotFound", "nodes not found")(w, nil)
	case !strings.Contains(string(body), string(n.UID)):
		fail(409, "Conflict", "the UID in the precondition does not match")(w, nil)
	default:
		delete(s.nodes, name)
		s.deletedNodes = append(s.deletedNodes, string(n.UID))
		s.send(w, 200, metav1.Status{Status: metav1.StatusSuccess})
	}
}

// patchNode applies a merge patch (RFC 7386) to this version of a Node.
func (s *apiServer) patchNode(w http.ResponseWriter, r *http.Request, name string) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	before := s.onPatch
	s.mu.Unlock()
	if before != nil {
		before()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.patches = append(s.patches, r.Header.Get("Content-Type")+" "+r.URL.RawQuery+" "+string(body))
	n, ok := s.nodes[name]
	if !ok {
		fail(404, "NotFound", "nodes not found")(w, nil)
		return
	}
	var object, patch map[string]any
	text, err := json.Marshal(n)
	if err == nil {
		err = errors.Join(json.Unmarshal(text, &object), json.Unmarshal(body, &patch))
	}
	if err != nil {
		s.t.Errorf("patch of a Node: %v: %s", err, body)
	}
	if v := patch["metadata"].(map[string]any)["resourceVersion"]; v != n.ResourceVersion {
		fail(409, "Conflict", "the object has been modified")(w, nil)
		return
	}
	merge(object, patch)
	text, err = json.Marshal(object)
	n = corev1.Node{}
	if err == nil {
		err = json.Unmarshal(text, &n)
	}
	if err != nil {
		s.t.Error(err)
	}
	n.ResourceVersion += "+"
	s.nodes[name] = n
	s.send(w, 200, n)
}

// edit changes a Node as another client.
func (s *apiServer) edit(name string, edit func(*corev1.Node)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.nodes[name]
	n = *n.DeepCopy()
	edit(&n)
	n.ResourceVersion += "."
	s.nodes[name] = n
	close(s.changed)
	s.changed = make(chan struct{})
}

// setNode puts a Node into the cluster. beat is the heartbeat by its kubelet's clock.
func (s *apiServer) setNode(name, uid, bootID string, ready corev1.ConditionStatus, beat metav1.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodes[name] = corev1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid), ResourceVersion: "1", Labels: map[string]string{"drover/managed": "true"}},
		Status: corev1.NodeStatus{
			NodeInfo:   corev1.NodeSystemInfo{BootID: bootID},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, LastHeartbeatTime: beat, LastTransitionTime: beat}},
		},
	}
	close(s.changed)
	s.changed = make(chan struct{})
}
