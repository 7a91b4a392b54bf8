package hosted_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"drover/e2e/fixture"
	"drover/tenants/pki"
)

// testKonnectivity checks that the API server reaches a node through an agent alone, that
// an agent with the arguments of the DaemonSet is one, and that no other credential makes
// one.
func (f *farm) testKonnectivity(t *testing.T) {
	if f.kubelet.programs["konnectivity-server"] == "" {
		fixture.Missing(t, "konnectivity-server and its agent: "+konnectivity+" names no folder with proxy-server and proxy-agent")
	}
	runtime.LockOSThread() // never unlocked: the agents end with this thread
	adminFile := f.file(t, "tenant-a-admin")
	admin := kubernetes.NewForConfigOrDie(f.load(adminFile))
	f.fakeNode(t, admin)
	call := func() string {
		out, err := f.admin.KubectlAs(t.Context(), adminFile, nil, "get", "--raw", "/api/v1/nodes/n2/proxy/healthz")
		if err != nil {
			return err.Error()
		}
		return out
	}
	if got := call(); !strings.Contains(got, "No agent available") {
		t.Errorf("without an agent: %s", got)
	}
	args, dir := f.agentArgs(t, admin)
	f.testImpostors(t, args, dir, call)

	agent := f.startAgent(t, args)
	defer agent.end()
	fixture.Retry(t, "the API server reaches the node through the agent", func() error {
		if got := call(); got != "hello through an agent" {
			return fmt.Errorf("%s; the agent said %s", got, agent.said())
		}
		return nil
	})
	resp, err := http.Get("http://127.0.0.1:8093/readyz")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("the readiness probe of a connected agent: %s", resp.Status)
	}
}

// agentArgs returns the arguments of the DaemonSet's agent, and the folder of its CA and its
// token.
func (f *farm) agentArgs(t *testing.T, admin kubernetes.Interface) (args []string, dir string) {
	t.Helper()
	dir = t.TempDir()
	root, err := admin.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "kube-root-ca.crt", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "ca.crt"), root.Data["ca.crt"])
	write(t, filepath.Join(dir, "token"), f.token(t, f.file(t, "tenant-a-admin"), "konnectivity-agent", "-n", "kube-system", agentAudience))
	set, err := admin.AppsV1().DaemonSets("kube-system").Get(t.Context(), "konnectivity-agent", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(set.Spec.Template.Spec.Containers[0].Args, "\n")
	return strings.Split(strings.NewReplacer("/var/run/secrets/konnectivity", dir, "$(HOST_IP)", address.String()).Replace(text), "\n"), dir
}

const agentAudience = "--audience=system:konnectivity-server"

// token makes a token of a ServiceAccount.
func (f *farm) token(t *testing.T, kubeconfig string, args ...string) string {
	t.Helper()
	token, err := f.admin.KubectlAs(t.Context(), kubeconfig, nil, append([]string{"create", "token"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(token)
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// testImpostors starts agents with credentials that are not an agent's. None is one.
func (f *farm) testImpostors(t *testing.T, args []string, dir string, call func() string) {
	const noToken, badToken = "Authentication context was not found", "lookup failed: "
	var all []*agent
	start := func(name, credential, why string) {
		text := strings.Replace(strings.Join(args, "\n"), "--service-account-token-path="+dir+"/token", credential, 1)
		port := 18100 + 2*len(all)
		text = strings.Replace(text, "--health-server-port=8093", fmt.Sprintf("--health-server-port=%d\n--admin-server-port=%d", port, port+1), 1)
		a := f.startAgent(t, strings.Split(text, "\n"))
		a.name, a.why = name, why
		all = append(all, a)
	}
	for name, pair := range f.impostors(t) {
		file := filepath.Join(dir, fmt.Sprint("pair", len(all)))
		write(t, file+".crt", string(pair.Cert))
		write(t, file+".key", string(pair.Key))
		start(name, "--agent-cert="+file+".crt\n--agent-key="+file+".key", noToken)
	}
	tenant := f.file(t, "tenant-a-admin")
	for _, account := range []struct{ kubeconfig, namespace string }{{tenant, "default"}, {f.admin.Admin, "kube-system"}} {
		if _, err := f.admin.KubectlAs(t.Context(), account.kubeconfig, nil, "create", "serviceaccount", "konnectivity-agent", "-n", account.namespace); err != nil {
			t.Fatal(err)
		}
	}
	for name, token := range map[string]string{
		"another account's token":                        f.token(t, tenant, "default", "-n", "kube-system", agentAudience),
		"the token of drover":                            f.token(t, tenant, "drover", "-n", "kube-system", agentAudience),
		"the token of that account in another namespace": f.token(t, tenant, "konnectivity-agent", "-n", "default", agentAudience),
		"the token of that account for the API server":   f.token(t, tenant, "konnectivity-agent", "-n", "kube-system"),
		"the token of that account of another cluster":   f.token(t, f.admin.Admin, "konnectivity-agent", "-n", "kube-system", agentAudience),
	} {
		file := filepath.Join(dir, fmt.Sprint("token", len(all)))
		write(t, file, token)
		start(name, "--service-account-token-path="+file, badToken)
	}
	for _, a := range all {
		fixture.Retry(t, a.name+" is refused", func() error {
			if said := a.said(); !strings.Contains(said, "cannot connect once") {
				return errors.New(said)
			}
			return nil
		})
	}
	if got := call(); !strings.Contains(got, "No agent available") {
		t.Errorf("one of them is an agent: %s", got)
	}
	said := fixture.ReadFile(t, filepath.Join(f.kubelet.dir, "konnectivity-server.log"))
	refused := map[string]int{}
	for _, a := range all {
		refused[a.why]++
		a.end()
	}
	for why, n := range refused {
		if strings.Count(said, why) < n {
			t.Errorf("the konnectivity-server says %q less than %d times:\n%s", why, n, said)
		}
	}
}

// impostors returns client certificates of all authorities that there are, in the name of
// the agents' account.
func (f *farm) impostors(t *testing.T) map[string]pki.Pair {
	t.Helper()
	other, err := pki.NewAuthority("kubernetes", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	leaf := pki.Leaf{File: "agent", Name: "system:serviceaccount:kube-system:konnectivity-agent", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:kube-system", "system:masters"}}
	all := map[string]pki.Pair{"the administrator's certificate": {Cert: f.secret(t, "tenant-a-admin")["tls.crt"], Key: f.secret(t, "tenant-a-admin")["tls.key"]}}
	for name, data := range map[string]map[string][]byte{
		"a certificate of the tenant's CA": f.secret(t, "tenant-a-ca"), "a certificate of the front proxy's CA": f.secret(t, "tenant-a-front-proxy-ca"), "a certificate of another tenant's CA": other,
	} {
		authority, err := pki.LoadAuthority(data)
		if err != nil {
			t.Fatal(err)
		}
		if all[name], err = authority.Issue(leaf, time.Now()); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(name, "the tenant's") {
			node := pki.Leaf{File: "node", Name: "system:node:n2", Groups: []string{"system:nodes"}}
			if all["a node's certificate"], err = authority.Issue(node, time.Now()); err != nil {
				t.Fatal(err)
			}
		}
	}
	return all
}

// fakeNode makes a Node whose kubelet is a server of this test.
func (f *farm) fakeNode(t *testing.T, admin kubernetes.Interface) {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "hello through an agent")
	}))
	listener, err := net.Listen("tcp", netip.AddrPortFrom(address, 0).String())
	if err != nil {
		t.Fatal(err)
	}
	server.Listener.Close()
	server.Listener = listener
	server.StartTLS()
	t.Cleanup(server.Close)
	port := int32(listener.Addr().(*net.TCPAddr).Port)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n2"}}
	if _, err := admin.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := admin.CoreV1().Nodes().Delete(context.WithoutCancel(t.Context()), "n2", metav1.DeleteOptions{}); err != nil {
			t.Logf("delete the Node: %v", err)
		}
	})
	fixture.Retry(t, "the Node has its address", func() error {
		n, err := admin.CoreV1().Nodes().Get(t.Context(), "n2", metav1.GetOptions{})
		if err != nil {
			return err
		}
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address.String()}}
		n.Status.DaemonEndpoints.KubeletEndpoint.Port = port
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		_, err = admin.CoreV1().Nodes().UpdateStatus(t.Context(), n, metav1.UpdateOptions{})
		return err
	})
}

// agent is a konnectivity agent.
type agent struct {
	cmd *exec.Cmd
	log string

	name, why string // of one that is refused
}

func (f *farm) startAgent(t *testing.T, args []string) *agent {
	t.Helper()
	a := &agent{log: filepath.Join(t.TempDir(), "agent.log")}
	log, err := os.Create(a.log)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	a.cmd = exec.Command(filepath.Join(filepath.Dir(f.kubelet.programs["konnectivity-server"]), "proxy-agent"), args...)
	a.cmd.Stdout, a.cmd.Stderr = log, log
	a.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := a.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.end)
	return a
}

func (a *agent) said() string {
	text, _ := os.ReadFile(a.log)
	return string(text)
}

// end ends the agent; a second call does nothing.
func (a *agent) end() {
	_ = a.cmd.Process.Kill()
	_ = a.cmd.Wait()
}
