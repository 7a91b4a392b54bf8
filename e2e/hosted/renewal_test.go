package hosted_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/tenants"
	"drover/tenants/pki"
)

// served returns the certificate that the tenant's API server serves.
func (f *farm) served() *x509.Certificate { return f.servedAt("10.231.0.2:6443") }

// servedAt returns the certificate that a server serves; an empty one if none answers.
func (f *farm) servedAt(address string) *x509.Certificate {
	dial := (&net.Dialer{}).DialContext
	if f.net != "" {
		dial = f.net.Dial
	}
	conn, err := dial(f.t.Context(), "tcp", address)
	if err != nil {
		return &x509.Certificate{}
	}
	defer conn.Close()
	client := tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
	if err := client.HandshakeContext(f.t.Context()); err != nil {
		return &x509.Certificate{}
	}
	return client.ConnectionState().PeerCertificates[0]
}

// testRenewal checks that a new name is in the certificate that is served, by the same
// process.
func (f *farm) testRenewal(t *testing.T, tenant pools.Cluster) {
	pid := f.kubelet.pid("kube-apiserver")
	if slices.Contains(f.served().DNSNames, "api.example.org") {
		t.Fatal("the name is there already")
	}
	changed := with(tenant, func(cp *pools.ControlPlane) { cp.CertSANs = []string{"api.example.org"} })
	f.controller.Set([]pools.Cluster{changed})
	fixture.Eventually(t, "the new certificate is served", func() bool { return slices.Contains(f.served().DNSNames, "api.example.org") })
	if now := f.kubelet.pid("kube-apiserver"); now != pid || pid == 0 {
		t.Errorf("the API server was process %d, and is %d", pid, now)
	}
	f.controller.Set([]pools.Cluster{tenant})
}

// testEndpoint gives the tenant another address. Its certificate is for that, and all that says
// where the API server is says so; then it has the address of before again.
func (f *farm) testEndpoint(t *testing.T, tenant pools.Cluster) {
	for _, at := range []netip.Addr{otherAddress, address} {
		endpoint := netip.AddrPortFrom(at, 6443).String()
		f.controller.Set([]pools.Cluster{with(tenant, func(cp *pools.ControlPlane) { cp.Endpoint.Address = at })})
		f.until("tenant-a", "ready at "+endpoint, func(s tenants.Status) bool {
			c := s.Condition(tenants.Ready)
			return c != nil && c.Status == metav1.ConditionTrue && s.Endpoint == endpoint
		})
		for _, server := range []string{endpoint, netip.AddrPortFrom(at, 8132).String()} {
			if c := f.servedAt(server); c.VerifyHostname(at.String()) != nil && (server == endpoint || f.kubelet.programs["konnectivity-server"] != "") {
				t.Errorf("the certificate of %s is for %v", server, c.IPAddresses)
			}
		}
		for _, secret := range []string{"tenant-a-kubeconfig", "tenant-a-admin"} {
			if !strings.Contains(string(f.secret(t, secret)["value"]), `"server": "https://`+endpoint+`"`) {
				t.Errorf("the Secret %s does not lead to %s", secret, endpoint)
			}
		}
		administrator := f.file(t, "tenant-a-admin")
		agent, err := f.admin.KubectlAs(t.Context(), administrator, nil, "get", "daemonset", "konnectivity-agent", "-n", "kube-system", "-o", "jsonpath={.spec.template.spec.containers[0].args}")
		fixture.WantText(t, "the agent's arguments", fmt.Sprint(agent, err), "--proxy-server-host="+at.String())
		f.wantFields(t, administrator, map[string]string{"endpoints kubernetes -n default .subsets[*].addresses[*].ip": at.String()})
		f.wantKubeadmJoin(t, administrator, endpoint)
	}
}

// testAge gives the tenant certificates of a year that were issued 300 days ago. The
// controller issues new ones, and no program has to start anew for them.
func (f *farm) testAge(t *testing.T, tenant pools.Cluster) {
	f.ready("tenant-a", version)
	f.stop()
	programs := []string{"etcd", "kube-apiserver", "konnectivity-server", "kube-controller-manager", "kube-scheduler"}
	pids := map[string]int{}
	for _, name := range programs {
		pids[name] = f.kubelet.pid(name)
	}
	leaves := []string{"apiserver", "apiserver-kubelet-client", "front-proxy-client", "controller-manager", "scheduler", "konnectivity-client"}
	old := f.age(t, leaves...)
	fixture.Eventually(t, "the old certificate is served", func() bool { return bytes.Equal(f.served().Raw, old["apiserver"].Raw) })

	f.start()
	f.controller.Set([]pools.Cluster{tenant})
	fixture.Retry(t, "a new certificate is served", func() error {
		c := f.served()
		if left := time.Until(c.NotAfter); left < 364*24*time.Hour {
			return fmt.Errorf("it ends %s, in %s", c.NotAfter, left)
		}
		return nil
	})
	f.ready("tenant-a", version)
	now := f.secret(t, "tenant-a-certificates")
	for _, name := range leaves {
		if c := parse(t, now[name+".crt"]); c.Equal(old[name]) || time.Until(c.NotAfter) < 364*24*time.Hour || c.Subject.String() != old[name].Subject.String() {
			t.Errorf("certificate %s: %s until %s", name, c.Subject, c.NotAfter)
		}
	}
	for _, name := range programs {
		if pid := f.kubelet.pid(name); pid != pids[name] || pid == 0 && f.kubelet.programs[name] != "" {
			t.Errorf("%s was process %d, and is %d", name, pids[name], pid)
		}
	}
}

// testKonnectivityAge checks that the certificate of the konnectivity-server, which reads it
// at its start only, lasts as long as the CA, and that one which does not is replaced, with
// the pod.
func (f *farm) testKonnectivityAge(t *testing.T, tenant pools.Cluster) {
	if f.kubelet.programs["konnectivity-server"] == "" {
		fixture.Missing(t, "konnectivity-server: "+konnectivity+" names no folder with it")
	}
	const at = "10.231.0.2:8132"
	ca := parse(t, f.secret(t, "tenant-a-ca")["tls.crt"])
	first := f.servedAt(at)
	if !first.NotAfter.Equal(ca.NotAfter) {
		t.Errorf("the certificate of the konnectivity-server ends %s, its CA %s", first.NotAfter, ca.NotAfter)
	}
	f.stop()
	pid := f.kubelet.pid("konnectivity-server")
	f.age(t, "konnectivity")
	f.start()
	f.controller.Set([]pools.Cluster{tenant})
	fixture.Retry(t, "a new certificate of the konnectivity-server is served", func() error {
		c, now := f.servedAt(at), f.kubelet.pid("konnectivity-server")
		if c.Equal(first) || !c.NotAfter.Equal(ca.NotAfter) || now == pid {
			return fmt.Errorf("it ends %s; it was process %d, and is %d", c.NotAfter, pid, now)
		}
		return nil
	})
	f.ready("tenant-a", version)
}

// age replaces certificates by those that were issued 300 days ago, and returns these.
func (f *farm) age(t *testing.T, names ...string) map[string]*x509.Certificate {
	t.Helper()
	secret, err := f.people.CoreV1().Secrets(namespace).Get(t.Context(), "tenant-a-certificates", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	old := map[string]*x509.Certificate{}
	for _, name := range names {
		by := f.secret(t, "tenant-a-ca")
		if name == "front-proxy-client" {
			by = f.secret(t, "tenant-a-front-proxy-ca")
		}
		authority, err := pki.LoadAuthority(by)
		if err != nil {
			t.Fatal(err)
		}
		c := parse(t, secret.Data[name+".crt"])
		leaf := pki.Leaf{File: name, Name: c.Subject.CommonName, Groups: c.Subject.Organization, Hosts: c.DNSNames}
		for _, ip := range c.IPAddresses {
			leaf.Hosts = append(leaf.Hosts, ip.String())
		}
		pair, err := authority.Issue(leaf, time.Now().Add(-300*24*time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		secret.Data[name+".crt"], secret.Data[name+".key"] = pair.Cert, pair.Key
		old[name] = parse(t, pair.Cert)
	}
	if _, err := f.people.CoreV1().Secrets(namespace).Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	return old
}

// parse reads a certificate.
func parse(t *testing.T, text []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(text)
	if block == nil {
		t.Fatalf("no certificate in %q", text)
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
