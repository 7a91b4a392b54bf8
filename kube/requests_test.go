package kube_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"drover/kube/token"
)

// request returns the certificate request that a kubelet of that node makes with the
// token of that ID.
func request(t testing.TB, name, id, groups, node string, edit ...func(*x509.CertificateRequest)) certificatesv1.CertificateSigningRequest {
	t.Helper()
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}}}
	for _, e := range edit {
		e(template)
	}
	return certificatesv1.CertificateSigningRequest{
		TypeMeta:   metav1.TypeMeta{APIVersion: "certificates.k8s.io/v1", Kind: "CertificateSigningRequest"},
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name), ResourceVersion: "1"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
			Username:   "system:bootstrap:" + id,
			Groups:     append(strings.Split(groups, ","), "system:bootstrappers", "system:authenticated"),
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
			Request:    pemRequest(t, template),
		},
	}
}

func pemRequest(t testing.TB, template *x509.CertificateRequest) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

// serving turns a request into one for a serving certificate.
func serving(csr certificatesv1.CertificateSigningRequest, node string) certificatesv1.CertificateSigningRequest {
	csr.Spec.SignerName = certificatesv1.KubeletServingSignerName
	csr.Spec.Username = "system:node:" + node
	csr.Spec.Groups = []string{"system:nodes", "system:authenticated"}
	csr.Spec.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth}
	return csr
}

// ask adds a request to the cluster.
func (s *apiServer) ask(csr certificatesv1.CertificateSigningRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	csr.CreationTimestamp = metav1.NewTime(time.Unix(1_800_000_000+int64(len(s.requested)), 0))
	s.requested = append(s.requested, csr)
	close(s.changed)
	s.changed = make(chan struct{})
}

// outcome returns the decision on a request, with the reason.
func (s *apiServer) outcome(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, csr := range s.requested {
		if csr.Name != name {
			continue
		}
		var all []string
		for _, c := range csr.Status.Conditions {
			all = append(all, fmt.Sprintf("%s: %s", c.Type, c.Message))
		}
		return strings.Join(all, "; ")
	}
	return "gone"
}

func (s *apiServer) getRequests(w http.ResponseWriter, name, selector string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := certificatesv1.CertificateSigningRequestList{TypeMeta: metav1.TypeMeta{APIVersion: "certificates.k8s.io/v1", Kind: "CertificateSigningRequestList"}}
	list.ResourceVersion = "1"
	for _, csr := range s.requested {
		if csr.Name == name {
			s.send(w, 200, csr)
			return
		}
		if "spec.signerName="+csr.Spec.SignerName == selector {
			list.Items = append(list.Items, csr)
		}
	}
	if name != "" {
		fail(404, "NotFound", "certificatesigningrequests not found")(w, nil)
		return
	}
	s.send(w, 200, list)
}

func (s *apiServer) eachRequest(selector string) iter.Seq[metav1.Object] {
	return func(yield func(metav1.Object) bool) {
		for _, csr := range s.requested {
			if "spec.signerName="+csr.Spec.SignerName == selector && !yield(&csr) {
				return
			}
		}
	}
}

func (s *apiServer) putRequest(w http.ResponseWriter, r *http.Request, name string) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		s.t.Errorf("decision on %q: %v", name, err)
		fail(400, "BadRequest", "what?")(w, nil)
		return
	}
	csr := *object.(*certificatesv1.CertificateSigningRequest)
	csr.TypeMeta = metav1.TypeMeta{APIVersion: "certificates.k8s.io/v1", Kind: "CertificateSigningRequest"}
	if !strings.HasSuffix(r.URL.Path, "/"+name+"/approval") {
		s.t.Errorf("a decision went to %s", r.URL.Path)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.requested {
		if have := &s.requested[i]; have.Name == name {
			if have.ResourceVersion != csr.ResourceVersion {
				fail(409, "Conflict", "the object has been modified")(w, nil)
				return
			}
			csr.ResourceVersion += "+"
			*have = csr
			close(s.changed)
			s.changed = make(chan struct{})
			s.send(w, 200, csr)
			return
		}
	}
	fail(404, "NotFound", "certificatesigningrequests not found")(w, nil)
}

var sealKey = []byte("the key in STATE/nodes.key, which lasts")

// groupsOf returns the groups of a token for a node, valid for ten minutes.
func groupsOf(id, node string) string {
	return token.Groups(sealKey, id, node, time.Now().Add(10*time.Minute))
}
