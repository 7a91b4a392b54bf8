package client_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"drover/kube/client"
)

// dial returns a client of an API server that gives one answer.
func dial(t *testing.T, status int, body string) client.Interface {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}))
	t.Cleanup(s.Close)
	c, err := client.New(&rest.Config{Host: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAnswers(t *testing.T) {
	const n = `{"kind":"Node","apiVersion":"v1","metadata":{"name":"n"}}`
	got, err := dial(t, 200, n).CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{})
	if err != nil || got.Name != "n" {
		t.Errorf("Node %q, error %v", got.Name, err)
	}
	list, err := dial(t, 200, `{"kind":"NodeList","apiVersion":"v1","items":[`+n+`]}`).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 || list.Items[0].Name != "n" {
		t.Errorf("list %+v, error %v", list, err)
	}
	w, err := dial(t, 200, `{"type":"ADDED","object":`+n+`}`+"\n").CoreV1().Nodes().Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if e := <-w.ResultChan(); e.Type != "ADDED" || e.Object.(*corev1.Node).Name != "n" {
		t.Errorf("event %+v", e)
	}
	v, err := dial(t, 200, `{"major":"1","minor":"37","gitVersion":"v1.37.1"}`).ServerVersion(t.Context())
	if err != nil || v.GitVersion != "v1.37.1" {
		t.Errorf("version %+v, error %v", v, err)
	}
}

func TestRefusals(t *testing.T) {
	const status = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","message":"no such lease","code":404}`
	if _, err := dial(t, 404, status).CoordinationV1().Leases("ns").Get(t.Context(), "n", metav1.GetOptions{}); !apierrors.IsNotFound(err) || err.Error() != "no such lease" {
		t.Errorf("error %v", err)
	}
	if _, err := dial(t, 200, `{"kind":"Deployment","apiVersion":"apps/v1"}`).AppsV1().DaemonSets("ns").Get(t.Context(), "n", metav1.GetOptions{}); err == nil {
		t.Error("no error for an object of another kind")
	}
	if _, err := dial(t, 200, "hello").ServerVersion(t.Context()); err == nil {
		t.Error("no error for a version that is none")
	}
	if _, err := client.New(&rest.Config{QPS: 1}); err == nil {
		t.Error("no error for a rate without a burst")
	}
}
