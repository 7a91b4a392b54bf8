package hosted_test

import (
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

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"drover/e2e/fixture"
)

// testKonnectivity checks that the API server reaches a node through an agent alone, that
// an agent with the arguments of the DaemonSet is one, and that a client certificate makes
// none.
func (f *farm) testKonnectivity(t *testing.T) {
	if f.kubelet.programs["konnectivity-server"] == "" {
		fixture.Missing(t, "konnectivity-server and its agent: "+konnectivity+" names no folder with proxy-server and proxy-agent")
	}
	runtime.LockOSThread() // never unlocked: the agents end with this thread
	adminFile := f.file(t, "tenant-a-admin")
	admin := kubernetes.NewForConfigOrDie(load(t, adminFile))
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

	dir := t.TempDir()
	root, err := admin.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "kube-root-ca.crt", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	token, err := f.admin.KubectlAs(t.Context(), adminFile, nil, "create", "token", "konnectivity-agent", "-n", "kube-system", "--audience=system:konnectivity-server")
	if err != nil {
		t.Fatal(err)
	}
	other, err := f.admin.KubectlAs(t.Context(), adminFile, nil, "create", "token", "default", "-n", "kube-system", "--audience=system:konnectivity-server")
	if err != nil {
		t.Fatal(err)
	}
	people := f.secret(t, "tenant-a-admin")
	for name, data := range map[string]string{"ca.crt": root.Data["ca.crt"], "token": token, "other": other, "tls.crt": string(people["tls.crt"]), "tls.key": string(people["tls.key"])} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.TrimSpace(data)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set, err := admin.AppsV1().DaemonSets("kube-system").Get(t.Context(), "konnectivity-agent", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	args := strings.Split(strings.NewReplacer("/var/run/secrets/konnectivity", dir, "$(HOST_IP)", address.String()).
		Replace(strings.Join(set.Spec.Template.Spec.Containers[0].Args, "\n")), "\n")

	for name, change := range map[string]func(string) string{
		"an administrator's certificate": func(a string) string {
			return strings.Replace(a, "--service-account-token-path="+dir+"/token", "--agent-cert="+dir+"/tls.crt\n--agent-key="+dir+"/tls.key", 1)
		},
		"the token of another account": func(a string) string { return strings.Replace(a, dir+"/token", dir+"/other", 1) },
	} {
		agent := f.startAgent(t, strings.Split(change(strings.Join(args, "\n")), "\n"))
		fixture.Eventually(t, name+" is refused", func() bool { return strings.Contains(agent.said(), "cannot connect once") })
		if got := call(); !strings.Contains(got, "No agent available") {
			t.Errorf("%s makes an agent: %s\n%s", name, got, agent.said())
		}
		agent.end()
	}
	said, err := os.ReadFile(filepath.Join(f.kubelet.dir, "konnectivity-server.log"))
	for _, why := range []string{"Authentication context was not found", "service account. Expected"} {
		if err != nil || !strings.Contains(string(said), why) {
			t.Errorf("the konnectivity-server does not say %q (%v):\n%s", why, err, said)
		}
	}
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
		if err := admin.CoreV1().Nodes().Delete(t.Context(), "n2", metav1.DeleteOptions{}); err != nil {
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
