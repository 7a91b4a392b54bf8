package kube_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drover/e2e/fixture"
	"drover/kube/approve"
	"drover/kube/token"
	"drover/pools"
)

// createRecord makes the record of a used token, unless there is one.
func (s *apiServer) createRecord(w http.ResponseWriter, r *http.Request) {
	var l coordinationv1.Lease
	body, _ := io.ReadAll(r.Body)
	if err := json.Unmarshal(body, &l); err != nil || l.Namespace != approve.UsedNamespace {
		s.t.Errorf("record %s: %v", body, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.records[l.Name]; ok {
		fail(409, "AlreadyExists", "leases already exists")(w, nil)
		return
	}
	l.UID = types.UID(fmt.Sprintf("record %d of %s", s.requests["POST records"], l.Name))
	s.records[l.Name] = l
	s.send(w, 201, l)
}

func (s *apiServer) getRecords(w http.ResponseWriter, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name == "" {
		list := coordinationv1.LeaseList{TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "LeaseList"}}
		s.send(w, 200, coordinationv1.LeaseList{TypeMeta: list.TypeMeta, Items: slices.Collect(maps.Values(s.records))})
		return
	}
	if l, ok := s.records[name]; ok {
		s.send(w, 200, l)
		return
	}
	fail(404, "NotFound", "leases not found")(w, nil)
}

func (s *apiServer) deleteRecord(w http.ResponseWriter, r *http.Request, name string) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	if l, ok := s.records[name]; !ok || !strings.Contains(string(body), string(l.UID)) {
		fail(409, "Conflict", "the UID in the precondition does not match")(w, nil)
		return
	}
	delete(s.records, name)
	s.send(w, 200, metav1.Status{Status: metav1.StatusSuccess})
}

// holder returns the UID of the request in the record of a token.
func (s *apiServer) holder(token string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l, ok := s.records[token]; ok {
		return *l.Spec.HolderIdentity
	}
	return ""
}

// setRecord makes the record of a token as an earlier process did.
func (s *apiServer) setRecord(token, holder string, acquired time.Time, seconds int32) {
	at := metav1.NewMicroTime(acquired)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records[token] = coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: token, Namespace: approve.UsedNamespace, UID: types.UID("record of " + token)},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, AcquireTime: &at, LeaseDurationSeconds: &seconds},
	}
}

// Two servers with the same key see two requests with one token, fifty times: each time one
// of the requests is approved and the other one denied, never none and never both.
func TestTwoApprovers(t *testing.T) {
	s := newAPIServer(t)
	for range 2 {
		withLoops(t, s, pools.Cluster{})
	}
	fixture.Eventually(t, "both watch", func() bool { return s.count("WATCH certificatesigningrequests") >= 2 })
	var all sync.WaitGroup
	for i := range 50 {
		id := fmt.Sprintf("aaaa%02d", i)
		groups := groupsOf(id, "m1")
		for _, which := range []string{"x", "y"} {
			all.Go(func() { s.ask(request(t, id+which, id, groups, "m1")) })
		}
	}
	all.Wait()
	for i := range 50 {
		id := fmt.Sprintf("aaaa%02d", i)
		approved := 0
		for _, name := range []string{id + "x", id + "y"} {
			fixture.Eventually(t, name+" decided", func() bool { return s.outcome(name) != "" })
			switch got := s.outcome(name); {
			case strings.HasPrefix(got, "Approved") && s.holder(id) == "uid-of-"+name:
				approved++
			case !strings.HasPrefix(got, "Denied: drover: its token was used for another certificate request before"):
				t.Errorf("%s: %s, recorded for %s", name, got, s.holder(id))
			}
		}
		if approved != 1 {
			t.Errorf("%d of the requests by token %s are approved", approved, id)
		}
	}
}

// The use of a token outlives the server and the request: a cluster deletes a request an hour
// after its approval, and the token may be valid for a day.
func TestUseOutlivesRequest(t *testing.T) {
	s := newAPIServer(t)
	c, _, _ := withLoops(t, s, pools.Cluster{})
	groups := token.Groups(sealKey, "aaaaaa", "m1", time.Now().Add(24*time.Hour))
	s.ask(request(t, "first", "aaaaaa", groups, "m1"))
	decided(t, s, "first", "Approved")
	c.Close()
	s.mu.Lock()
	s.requested = nil
	s.mu.Unlock()
	withLoops(t, s, pools.Cluster{})
	s.ask(request(t, "second", "aaaaaa", groups, "m1"))
	decided(t, s, "second", "Denied: drover: its token was used for another certificate request before")
}

// A server that ended between the record and the approval goes on with the same request.
func TestUseIsTakenUp(t *testing.T) {
	s := newAPIServer(t)
	s.setRecord("aaaaaa", "uid-of-mine", time.Now(), 3600)
	s.ask(request(t, "other", "aaaaaa", groupsOf("aaaaaa", "m1"), "m1"))
	s.ask(request(t, "mine", "aaaaaa", groupsOf("aaaaaa", "m1"), "m1"))
	withLoops(t, s, pools.Cluster{})
	decided(t, s, "other", "Denied: drover: its token was used")
	decided(t, s, "mine", "Approved")
}

// What an earlier drover approved has no record: it gets one before the next request by its
// token is decided on.
func TestUseOfEarlierVersion(t *testing.T) {
	s := newAPIServer(t)
	before := request(t, "before", "aaaaaa", groupsOf("aaaaaa", "m1"), "m1")
	before.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved}}
	s.ask(request(t, "later", "aaaaaa", groupsOf("aaaaaa", "m1"), "m1"))
	s.ask(before)
	ended := request(t, "ended", "bbbbbb", token.Groups(sealKey, "bbbbbb", "m1", time.Now().Add(-time.Minute)), "m1")
	ended.Status = before.Status
	s.ask(ended)
	shared := request(t, "shared", "cccccc", groupsOf("cccccc", ""), "m1")
	shared.Status = before.Status
	s.ask(shared)
	s.set("POST records", fail(500, "InternalError", "no leader"))
	c, _, _ := withLoops(t, s, pools.Cluster{})
	fixture.Eventually(t, "a try", func() bool { return s.count("POST records") > 0 })
	if got := s.outcome("later"); got != "" {
		t.Errorf("decided on before the use was recorded: %s", got)
	}
	s.set("POST records", nil)
	decided(t, s, "later", "Denied: drover: its token was used")
	if got := s.holder("aaaaaa"); got != "uid-of-before" {
		t.Errorf("recorded for %q", got)
	}
	c.Close()
	if s.holder("bbbbbb")+s.holder("cccccc") != "" || s.holder("aaaaaa") != "uid-of-before" {
		t.Errorf("records %v", s.records)
	}
}

// Records go when their tokens have ended, and no sooner: the clocks of servers differ.
func TestRecordsEnd(t *testing.T) {
	s := newAPIServer(t)
	now := time.Now()
	s.setRecord("ended0", "u", now.Add(-2*time.Hour), 3600)
	s.setRecord("lasts0", "u", now.Add(-2*time.Hour), 3*3600)
	s.setRecord("not-a-record", "u", now.Add(-2*time.Hour), 1)
	s.mu.Lock()
	l := s.records["not-a-record"]
	l.Spec = coordinationv1.LeaseSpec{}
	s.records["not-a-record"] = l
	s.mu.Unlock()
	withLoops(t, s, pools.Cluster{})
	fixture.Eventually(t, "the record is deleted", func() bool { return s.holder("ended0") == "" })
	s.ask(request(t, "r", "aaaaaa", groupsOf("aaaaaa", "m1"), "m1"))
	decided(t, s, "r", "Approved")
	s.mu.Lock()
	defer s.mu.Unlock()
	l = s.records["aaaaaa"]
	end := l.Spec.AcquireTime.Add(time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second)
	if left := end.Sub(now); left < 69*time.Minute || left > 71*time.Minute {
		t.Errorf("the record of a token of ten minutes lasts %s", left)
	}
	delete(s.records, "aaaaaa")
	if names := slices.Sorted(maps.Keys(s.records)); !slices.Equal(names, []string{"lasts0", "not-a-record"}) {
		t.Errorf("records %q", names)
	}
}

// Without the right to record, or without the namespace, nothing is approved, and the
// cluster is not ready. The error has the remedy. Once it has worked, the request is approved.
func TestNoRecordNoApproval(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"no right":     fail(403, "Forbidden", "leases is forbidden"),
		"no namespace": fail(404, "NotFound", `namespaces "drover-used-tokens" not found`),
		"no leader":    fail(500, "InternalError", "no leader"),
	} {
		t.Run(name, func(t *testing.T) {
			s := newAPIServer(t)
			s.set("POST records", answer)
			if name == "no right" {
				s.set("GET records", answer)
			}
			c, requests, log := withLoops(t, s, pools.Cluster{})
			if name == "no right" { // known before any node asks
				fixture.Eventually(t, "it is logged", func() bool { return strings.Contains(log.String(), "drover cluster prepare") })
			}
			s.ask(request(t, "r", "aaaaaa", groupsOf("aaaaaa", "m1"), "m1"))
			fixture.Eventually(t, "the report of the error", func() bool { return slices.Contains(requests.of("r"), "error") })
			if got := s.outcome("r"); got != "" {
				t.Errorf("decided on without a record: %s", got)
			}
			err := c.Check(t.Context())["tenant-a"]
			if remedy := `run "drover cluster prepare" again`; err == nil || name != "no leader" && !strings.Contains(err.Error(), remedy) {
				t.Errorf("the cluster: %v, want %s", err, remedy)
			}
			s.set("POST records", nil)
			s.set("GET records", nil)
			decided(t, s, "r", "Approved")
		})
	}
}
