package kube_test

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"net"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	bootstrap "k8s.io/cluster-bootstrap/token/util"

	"drover/pools/kube"
)

type csr = certificatesv1.CertificateSigningRequest

// What the approver thinks of requests, by what they say.
func TestJudge(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	groups := func(id, node string) string { return kube.Groups(sealKey, id, node, now.Add(time.Minute)) }
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
			late := kube.Groups(sealKey, "abcdef", "m1c29", now.Add(time.Hour))
			g := groups("abcdef", "m1c29")
			at := strings.LastIndex(g, ":") + 1
			c.Spec.Groups = strings.Split(g[:at]+late[at:at+8]+g[at+8:], ",")
		}, "denied", "not minted"},
		{"too late", func(c *csr) {
			c.Spec.Groups = strings.Split(kube.Groups(sealKey, "abcdef", "m1c29", now.Add(-time.Second)), ",")
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
			c.Spec.Groups = strings.Split(kube.Groups([]byte("another key"), "abcdef", "m1c29", now.Add(time.Minute)), ",")
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
			got, why := kube.Judge(&c, sealKey, now)
			if got != tt.want || !strings.Contains(why, tt.why) || (tt.why == "") != (why == "") {
				t.Errorf("%s: %q, want %s: %q", got, why, tt.want, tt.why)
			}
		})
	}
}

func TestJudgeServing(t *testing.T) {
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
			got, why := kube.Judge(&c, sealKey, time.Now())
			if got != tt.want || !strings.Contains(why, tt.why) || (tt.why == "") != (why == "") {
				t.Errorf("%s: %q, want %s: %q", got, why, tt.want, tt.why)
			}
		})
	}
}

// The policy of deploy/rbac.yaml reads the groups in base64. It lets those of
// drover through, and no third group, wherever it is put.
func TestGroupsFitThePolicy(t *testing.T) {
	text, err := os.ReadFile("../../deploy/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`\['auth-extra-groups'\]\.matches\('(.*)'\)`).FindSubmatch(text)
	if m == nil {
		t.Fatal("rbac.yaml has no expression for the groups of a token")
	}
	fits := regexp.MustCompile(string(m[1]))
	encode := func(groups string) string { return base64.StdEncoding.EncodeToString([]byte(groups)) }
	groups := ""
	for i := range 200 {
		groups = kube.Groups([]byte{byte(i)}, "abcdef", "m1c29", time.Unix(int64(i)*20_000_000, 0))
		if !fits.MatchString(encode(groups)) {
			t.Fatalf("the policy refuses %q", groups)
		}
		for g := range strings.SplitSeq(groups, ",") {
			if err := bootstrap.ValidateBootstrapGroupName(g); err != nil {
				t.Fatal(err)
			}
		}
	}
	const other = ",system:bootstrappers:kubeadm:default-node-token"
	for at := range len(groups) {
		for _, bad := range []string{groups[:at] + "," + groups[at+1:], groups[:at] + other + groups[min(at+len(other), len(groups)):], groups[:at] + other, groups[:at] + other + groups[at:]} {
			if strings.Count(bad, ",") > 1 && fits.MatchString(encode(bad)) {
				t.Errorf("the policy lets %q through", bad)
			}
		}
	}
	for _, bad := range []string{"system:bootstrappers:kubeadm:default-node-token", "system:bootstrappers:drover:node", groups + other, other[1:] + "," + groups, ""} {
		if fits.MatchString(encode(bad)) {
			t.Errorf("the policy lets %q through", bad)
		}
	}
}
