package controlplane_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"drover/e2e/controlplane"
	"drover/e2e/fixture"
	"drover/kube"
	"drover/kube/approve"
	"drover/kube/token"
	"drover/pools"
)

// testUsedOnce shows each of fifty tokens to two servers twice at the same time: each gets
// one certificate. It gets no other one when the cluster has forgotten the requests and the
// servers have been restarted.
func testUsedOnce(t *testing.T, p *controlplane.Cluster) {
	const tokens = 50
	people, holder := clients(t, p)
	servers := func() (stop func()) {
		var all [2]*kube.Clusters
		for i := range all {
			all[i] = &kube.Clusters{Log: slog.New(slog.NewTextHandler(t.Output(), nil)), StartLoops: true, Key: droverKey}
			all[i].Set([]pools.Cluster{{Name: p.Name, Kubeconfig: p.Client}})
		}
		return func() { all[0].Close(); all[1].Close() }
	}
	stop := servers()
	for i := range tokens {
		mint(t, people, tokenID(i), nodeOf(i))
	}
	var asked sync.WaitGroup
	for i := range tokens {
		for range 2 {
			asked.Go(func() { askAs(t, holder(tokenID(i)), nodeOf(i)) })
		}
	}
	asked.Wait()
	for i := range tokens {
		approved := 0
		for _, r := range awaitDecisions(t, people, tokenID(i), 2) {
			switch why := r.Status.Conditions[0]; why.Type {
			case certificatesv1.CertificateApproved:
				approved++
				if l, err := people.CoordinationV1().Leases(approve.UsedNamespace).Get(t.Context(), tokenID(i), metav1.GetOptions{}); err != nil || *l.Spec.HolderIdentity != string(r.UID) {
					t.Errorf("the record of token %d: %v, %v; want %s", i, l.Spec, err, r.UID)
				}
			default:
				if len(r.Status.Certificate) > 0 || !strings.Contains(why.Message, "its token was used for another certificate request before") {
					t.Errorf("token %d: %+v", i, r.Status)
				}
			}
		}
		if approved != 1 {
			t.Errorf("token %d: %d requests are approved", i, approved)
		}
	}
	stop()

	if err := people.CertificatesV1().CertificateSigningRequests().DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	askAs(t, holder(tokenID(0)), nodeOf(0))
	defer servers()()
	for _, r := range awaitDecisions(t, people, tokenID(0), 1) {
		if why := r.Status.Conditions[0]; why.Type != certificatesv1.CertificateDenied || !strings.Contains(why.Message, "its token was used") {
			t.Errorf("after a restart, without the earlier requests: %+v", why)
		}
	}
}

func tokenID(i int) string { return fmt.Sprintf("once%02d", i) }
func nodeOf(i int) string  { return fmt.Sprintf("once-%d", i) }

const tokenSecret = "0123456789abcdef"

// clients returns the client of the administrator, and one that makes clients of the
// holders of tokens.
func clients(t *testing.T, p *controlplane.Cluster) (people kubernetes.Interface, holder func(id string) kubernetes.Interface) {
	t.Helper()
	conf, err := clientcmd.BuildConfigFromFlags("", p.Admin)
	if err != nil {
		t.Fatal(err)
	}
	conf.QPS, conf.Burst = 1000, 1000
	return kubernetes.NewForConfigOrDie(conf), func(id string) kubernetes.Interface {
		conf := rest.AnonymousClientConfig(conf)
		conf.BearerToken = id + "." + tokenSecret
		return kubernetes.NewForConfigOrDie(conf)
	}
}

// mint makes a token for a node, as drover makes it.
func mint(t *testing.T, people kubernetes.Interface, id, node string) {
	t.Helper()
	end := time.Now().Add(time.Hour)
	_, err := people.CoreV1().Secrets(metav1.NamespaceSystem).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-" + id}, Type: corev1.SecretTypeBootstrapToken,
		StringData: map[string]string{
			"token-id": id, "token-secret": tokenSecret, "expiration": end.UTC().Format(time.RFC3339),
			"usage-bootstrap-authentication": "true", "auth-extra-groups": token.Groups(droverKey, id, node, end),
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// askAs requests the client certificate of a node.
func askAs(t *testing.T, holder kubernetes.Interface, node string) {
	request, _ := newRequest(t, node)
	fixture.Retry(t, "the API server knows the token", func() error { // it watches Secrets
		_, err := holder.CertificatesV1().CertificateSigningRequests().Create(t.Context(), &certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "once-"},
			Spec: certificatesv1.CertificateSigningRequestSpec{
				SignerName: clientSigner, Request: request,
				Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
			},
		}, metav1.CreateOptions{})
		return err
	})
}

// awaitDecisions waits until n requests by a token are decided on, and returns them.
func awaitDecisions(t *testing.T, people kubernetes.Interface, id string, n int) (all []certificatesv1.CertificateSigningRequest) {
	t.Helper()
	fixture.Retry(t, "decisions on the requests by "+id, func() error {
		list, err := people.CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		all = nil
		for _, r := range list.Items {
			if r.Spec.Username == "system:bootstrap:"+id && len(r.Status.Conditions) > 0 {
				all = append(all, r)
			}
		}
		if len(all) != n {
			return errors.New("pending")
		}
		return nil
	})
	return all
}
