package netns

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"drover/e2e/fixture"

	"golang.org/x/sys/unix"
)

// Namespace is a network namespace.
type Namespace string

// NewNamespace makes a namespace, which is removed at the end of the test. A namespace of
// that name, which a killed run has left, is removed first: no other test may use the name.
func NewNamespace(t testing.TB, name string) Namespace {
	t.Helper()
	n := Namespace(name)
	if _, err := os.Stat(filepath.Join("/run/netns", name)); err == nil {
		run(t, "ip", "netns", "del", name)
	}
	run(t, "ip", "netns", "add", name)
	t.Cleanup(func() { run(t, "ip", "netns", "del", name) })
	n.IP(t, "link", "set", "lo", "up")
	return n
}

// IP runs iproute2 on the namespace.
func (n Namespace) IP(t testing.TB, args ...string) {
	t.Helper()
	run(t, "ip", append([]string{"-n", string(n)}, args...)...)
}

// Link connects an interface of n to one of another namespace (veth). Both are down. The end
// of the test removes them: the kernel would remove them with their namespaces only some
// time later, and the next test could not use the names.
func (n Namespace) Link(t testing.TB, device string, other Namespace, peer string) {
	t.Helper()
	n.IP(t, "link", "add", device, "type", "veth", "peer", "name", peer, "netns", string(other))
	t.Cleanup(func() {
		_ = n.Command("ip", "link", "del", device).Run() // the test may have taken it away
	})
}

// AwaitPort waits until a bridge of n forwards what its port gets. The kernel learns some time
// after the other end came up that it is, and drops everything until then.
func (n Namespace) AwaitPort(t testing.TB, port string) {
	t.Helper()
	fixture.Eventually(t, "the bridge forwards from "+port, func() bool {
		out, err := n.Command("ip", "-d", "link", "show", port).Output()
		return err == nil && strings.Contains(string(out), "state forwarding")
	})
}

// In runs f in the namespace, and fails the test with its error. Sockets that f opens stay
// in the namespace.
func (n Namespace) In(t testing.TB, f func() error) {
	t.Helper()
	if err := n.Do(f); err != nil {
		t.Fatal(err)
	}
}

// Do is [Namespace.In] for a goroutine that is not the test's: it returns the error.
func (n Namespace) Do(f func() error) error {
	errs := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		fd, err := os.Open(filepath.Join("/run/netns", string(n)))
		if err == nil {
			defer fd.Close()
			err = unix.Setns(int(fd.Fd()), unix.CLONE_NEWNET)
		}
		if err == nil {
			err = f()
		}
		errs <- err
	}()
	return <-errs
}

// Dial connects to an address, not a name, from within the namespace.
func (n Namespace) Dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	err = n.Do(func() error {
		var d net.Dialer
		conn, err = d.DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// Command makes a command that runs in the namespace, without the environment of the
// caller.
func (n Namespace) Command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command("nsenter", append([]string{"--net=/run/netns/" + string(n), name}, args...)...)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	return cmd
}

// Daemon starts a command in the namespace. It ends with the test, and a failed test
// shows its output.
func (n Namespace) Daemon(t testing.TB, name string, args ...string) {
	t.Helper()
	cmd := n.Command(name, args...)
	said, err := os.Create(filepath.Join(t.TempDir(), "said"))
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // a process that ended before is reported by Wait
		_ = cmd.Wait()         // it was killed
		if b, err := os.ReadFile(said.Name()); t.Failed() {
			t.Logf("%s said, %v:\n%s", name, err, b)
		}
	})
}

// Need skips the test as [fixture.Missing] does, unless the user is root and the programs
// exist.
func Need(t testing.TB, programs ...string) {
	t.Helper()
	fixture.Root(t)
	for _, p := range append(programs, "ip", "nsenter", "unshare") {
		if _, err := exec.LookPath(p); err != nil {
			fixture.Missing(t, err)
		}
	}
}

// NeedLinks skips the test unless the kernel has interfaces of these types, such as bond. That
// is no failure in CI either: no package adds them to a kernel, and TestBonds in e2e runs such
// tests with Debian's.
func NeedLinks(t testing.TB, types ...string) {
	t.Helper()
	Need(t)
	n := NewNamespace(t, fmt.Sprintf("drvtypes%d", os.Getpid()))
	n.IP(t, "link", "add", "below", "type", "veth", "peer", "name", "peer")
	for _, typ := range types {
		args := []string{"link", "add", "try", "type", typ}
		switch typ {
		case "vlan":
			args = append(args, "id", "7")
			args = slices.Insert(args, 2, "link", "below", "name")
		case "vxlan":
			args = append(args, "id", "7", "dstport", "8472")
		}
		switch out, err := n.Command("ip", args...).CombinedOutput(); {
		case strings.Contains(string(out), "Unknown device type"):
			t.Skipf("SKIPPED, NOT TESTED: this kernel has no interfaces of type %s (TestBonds in e2e has)", typ)
		case err != nil:
			t.Fatalf("ip %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		n.IP(t, "link", "del", "try")
	}
}

func run(t testing.TB, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}
