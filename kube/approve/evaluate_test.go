package approve_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drover/kube/approve"
	"drover/kube/token"
)

type csr = certificatesv1.CertificateSigningRequest

var sealKey = []byte("the key in STATE/nodes.key, which lasts")

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

func TestEvaluate(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	groups := func(id, node string) string { return token.Groups(sealKey, id, node, now.Add(time.Minute)) }
	client := func(c *x509.CertificateRequest) {}
	ask := func(edit func(*x509.CertificateRequest)) func(*csr) {
		return func(c *csr) {
			*c = request(t, "r", "abcdef", groups("abcdef", "m1c29"), "m1c29", edit)
		}
	}
	tests := []struct {
		name string
		edit func(*csr)
		want string // verdict
		why  string
	}{
		{"as a kubelet asks", func(*csr) {}, "approved", ""},
		{"with an RSA key's usages", func(c *csr) { c.Spec.Usages = append(c.Spec.Usages, certificatesv1.UsageKeyEncipherment) }, "approved", ""},
		{"by a shared token", func(c *csr) { *c = request(t, "r", "abcdef", groups("abcdef", ""), "any") }, "approved", ""},

		{"of another node's name", func(c *csr) { *c = request(t, "r", "abcdef", groups("abcdef", "m1c29"), "m1c30") }, "denied", "not minted for a node of this name"},
		{"the grant of another token", func(c *csr) { c.Spec.Groups = strings.Split(groups("ghijkl", "m1c29"), ",") }, "denied", "not minted for a node of this name"},
		{"a grant that lasts longer", func(c *csr) {
			late := token.Groups(sealKey, "abcdef", "m1c29", now.Add(time.Hour))
			g := groups("abcdef", "m1c29")
			at := strings.LastIndex(g, ":") + 1
			c.Spec.Groups = strings.Split(g[:at]+late[at:at+8]+g[at+8:], ",")
		}, "denied", "not minted"},
		{"too late", func(c *csr) {
			c.Spec.Groups = strings.Split(token.Groups(sealKey, "abcdef", "m1c29", now.Add(-time.Second)), ",")
		}, "denied", "its token expired at 2026-11-21T11:59:59Z"},
		{"in kubeadm's group too", func(c *csr) {
			c.Spec.Groups = append(c.Spec.Groups, "system:bootstrappers:kubeadm:default-node-token")
		}, "denied", "which drover gives to none"},
		{"in two grants", func(c *csr) {
			c.Spec.Groups = append(c.Spec.Groups, "system:bootstrappers:drover:boot:x")
		}, "denied", "which drover gives to none"},

		{"a user", ask(func(c *x509.CertificateRequest) { c.Subject.CommonName = "m1c29" }), "denied", "is not that of a node"},
		{"no name", ask(func(c *x509.CertificateRequest) { c.Subject.CommonName = "system:node:" }), "denied", "is not that of a node"},
		{"masters", ask(func(c *x509.CertificateRequest) { c.Subject.Organization = []string{"system:masters"} }), "denied", "is not that of a node"},
		{"masters too", ask(func(c *x509.CertificateRequest) {
			c.Subject.Organization = []string{"system:nodes", "system:masters"}
		}), "denied", "is not that of a node"},
		{"no organization", ask(func(c *x509.CertificateRequest) { c.Subject.Organization = nil }), "denied", "is not that of a node"},
		{"a unit", ask(func(c *x509.CertificateRequest) { c.Subject.OrganizationalUnit = []string{"x"} }), "denied", "is not that of a node"},
		{"two names", ask(func(c *x509.CertificateRequest) {
			c.Subject.ExtraNames = append(pkix.Name{CommonName: "system:node:m1c30"}.ToRDNSequence()[0], pkix.Name{CommonName: "system:node:m1c29"}.ToRDNSequence()[0]...)
		}), "denied", "is not that of a node"},
		{"a DNS name", ask(func(c *x509.CertificateRequest) { c.DNSNames = []string{"m1c29"} }), "denied", "asks for some"},
		{"an address", ask(func(c *x509.CertificateRequest) { c.IPAddresses = []net.IP{net.IPv4(10, 0, 0, 1)} }), "denied", "asks for some"},
		{"an extension", ask(func(c *x509.CertificateRequest) {
			c.ExtraExtensions = []pkix.Extension{{Id: []int{2, 5, 29, 19}, Value: []byte{0x30, 3, 1, 1, 0xff}}} // a CA
		}), "denied", "asks for some"},
		{"to serve", func(c *csr) { c.Spec.Usages = append(c.Spec.Usages, certificatesv1.UsageServerAuth) }, "denied", "not for those of a client"},
		{"no usages", func(c *csr) { c.Spec.Usages = nil }, "denied", "not for those of a client"},
		{"no PEM", func(c *csr) { c.Spec.Request = []byte("x") }, "denied", "not one certificate request"},
		{"two in one", func(c *csr) { c.Spec.Request = append(c.Spec.Request, c.Spec.Request...) }, "denied", "not one certificate request"},
		{"not DER", func(c *csr) {
			c.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: []byte("x")})
		}, "denied", "cannot be read"},
		{"a broken signature", func(c *csr) {
			b, _ := pem.Decode(c.Spec.Request)
			b.Bytes[len(b.Bytes)-1] ^= 1
			c.Spec.Request = pem.EncodeToMemory(b)
		}, "denied", "not signed by its key"},

		{"another drover's", func(c *csr) {
			c.Spec.Groups = strings.Split(token.Groups([]byte("another key"), "abcdef", "m1c29", now.Add(time.Minute)), ",")
		}, "left", "another drover"},
		{"a made-up grant", func(c *csr) { c.Spec.Groups[1] = "system:bootstrappers:drover:boot:x" }, "left", "another drover"},
		{"a token of kubeadm's", func(c *csr) { c.Spec.Groups = []string{"system:bootstrappers:kubeadm:default-node-token"} }, "foreign", ""},
		{"no grant", func(c *csr) { c.Spec.Groups = c.Spec.Groups[:1] }, "foreign", ""},
		{"a user with its groups", func(c *csr) { c.Spec.Username = "mallory" }, "foreign", ""},
		{"a kubelet that renews", func(c *csr) { c.Spec.Username, c.Spec.Groups = "system:node:m1c29", []string{"system:nodes"} }, "foreign", ""},
		{"of another signer", func(c *csr) { c.Spec.SignerName = certificatesv1.KubeAPIServerClientSignerName }, "foreign", ""},
		{"issued", func(c *csr) { c.Status.Certificate = []byte("x") }, "settled", ""},
		{"denied before", func(c *csr) {
			c.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: "Denied"}}
		}, "settled", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := request(t, "r", "abcdef", groups("abcdef", "m1c29"), "m1c29", client)
			tt.edit(&c)
			got, why := approve.Evaluate(&c, sealKey, now)
			if got != tt.want || !strings.Contains(why, tt.why) || (tt.why == "") != (why == "") {
				t.Errorf("%s: %q, want %s: %q", got, why, tt.want, tt.why)
			}
		})
	}
}

func TestEvaluateServing(t *testing.T) {
	names := func(dns []string, ips ...net.IP) func(*csr) {
		return func(c *csr) {
			*c = serving(request(t, "r", "", "", "m1c29", func(r *x509.CertificateRequest) { r.DNSNames, r.IPAddresses = dns, ips }), "m1c29")
		}
	}
	own := names([]string{"m1c29"}, net.IPv4(10, 28, 36, 173))
	tests := []struct {
		name      string
		edit      func(*csr)
		want, why string
	}{
		{"as a kubelet asks", own, "approved", ""},
		{"an address alone", names(nil, net.IPv4(10, 28, 36, 173)), "approved", ""},
		{"another name", names([]string{"m1c29", "kubernetes.default"}), "left", "the node's own would do"},
		{"nothing", names(nil), "left", "no name and no address"},
		{"a URI", func(c *csr) {
			*c = serving(request(t, "r", "", "", "m1c29", func(r *x509.CertificateRequest) { r.URIs = []*url.URL{{Scheme: "https", Host: "x"}} }), "m1c29")
		}, "left", "URIs"},
		{"a CA", func(c *csr) {
			*c = serving(request(t, "r", "", "", "m1c29", func(r *x509.CertificateRequest) {
				r.DNSNames, r.ExtraExtensions = []string{"m1c29"}, []pkix.Extension{{Id: []int{2, 5, 29, 19}, Value: []byte{0x30, 3, 1, 1, 0xff}}}
			}), "m1c29")
		}, "left", "extension 2.5.29.19"},
		{"another node's", func(c *csr) { own(c); c.Spec.Username = "system:node:m1c30" }, "left", `node "m1c30" asks for a certificate of node "m1c29"`},
		{"as a client", func(c *csr) { own(c); c.Spec.Usages[1] = certificatesv1.UsageClientAuth }, "left", "not for those of a server"},
		{"a token", func(c *csr) { own(c); c.Spec.Username = "system:bootstrap:abcdef" }, "foreign", ""},
		{"no node", func(c *csr) { own(c); c.Spec.Groups = nil }, "foreign", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var c csr
			tt.edit(&c)
			got, why := approve.Evaluate(&c, sealKey, time.Now())
			if got != tt.want || !strings.Contains(why, tt.why) || (tt.why == "") != (why == "") {
				t.Errorf("%s: %q, want %s: %q", got, why, tt.want, tt.why)
			}
		})
	}
}
