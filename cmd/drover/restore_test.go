package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drover/e2e/fixture"
)

// restoring is a server that backups are restored under.
type restoring struct {
	t        *testing.T
	dir, api string
	server   *exec.Cmd
	log      *fixture.Log
}

// start starts the server, and waits until it serves.
func (r *restoring) start() {
	r.t.Helper()
	r.log = &fixture.Log{}
	r.server = exec.Command(filepath.Join(r.dir, "drover"), "serve", "-c", filepath.Join(r.dir, "drover.yaml"), "--state", filepath.Join(r.dir, "state"))
	r.server.Stderr = r.log
	if err := r.server.Start(); err != nil {
		r.t.Fatal(err)
	}
	fixture.Eventually(r.t, "the server serves", func() bool { return strings.Contains(r.log.String(), "msg=serving") })
}

func (r *restoring) kill() {
	_ = r.server.Process.Kill()
	_ = r.server.Wait() // it was killed
}

// drover runs a command, and returns what it printed.
func (r *restoring) drover(ctx context.Context, args ...string) (string, int) {
	var out strings.Builder
	code := run(ctx, args, &out, &out)
	return out.String(), code
}

// call runs a command with the API of the server.
func (r *restoring) call(args ...string) string {
	r.t.Helper()
	out, code := r.drover(r.t.Context(), append(args, "--api", "http://"+r.api, "--token-file", filepath.Join(r.dir, "state", "api.token"))...)
	if code != 0 {
		r.t.Fatalf("%q: %s\n%s", args, out, r.log)
	}
	return out
}

// newRestoring starts a server, and makes a backup of it, with the node n1.
func newRestoring(t *testing.T) (r *restoring, file string) {
	t.Helper()
	r = &restoring{t: t, dir: t.TempDir()}
	port := func() string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		return l.Addr().String()
	}
	r.api = port()
	text := fmt.Sprintf(`server: {dhcp: "off", address: 127.0.0.1, http: "%s", tftp: "%s", api: "%s"}
subnets: [{cidr: 10.28.0.0/16}]
pools: [{name: web, image: debian-12}]
`, port(), port(), r.api)
	if err := os.WriteFile(filepath.Join(r.dir, "drover.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	linkDrover(t, r.dir)
	file = filepath.Join(r.dir, "one.backup")
	r.start()
	t.Cleanup(func() { r.kill() })
	r.call("node", "add", "n1", "--pool", "web", "--mac", "52:54:00:77:01:01", "--ip", "10.28.0.11")
	if out, code := r.drover(t.Context(), "backup", file, "--state", filepath.Join(r.dir, "state")); code != 0 {
		t.Fatal(out)
	}
	return r, file
}

// TestRestoreKilled kills the server at random instants while a backup is restored under it.
// Then the state is the old one or that of the backup, and complete.
func TestRestoreKilled(t *testing.T) {
	r, file := newRestoring(t)
	state := filepath.Join(r.dir, "state")
	const both = "n1\nn2\n"
	found := map[string]int{}
	for range fixture.Attack(15, 200) {
		if r.call("node", "list", "-o", "name") != both {
			r.call("node", "add", "n2", "--pool", "web", "--mac", "52:54:00:77:01:02", "--ip", "10.28.0.12")
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan string, 1)
		go func() {
			out, _ := r.drover(ctx, "restore", file, "--now", "-y", "--state", state, "--api", "http://"+r.api, "--token-file", filepath.Join(state, "api.token"))
			ended <- out
		}()
		time.Sleep(rand.N(400 * time.Millisecond)) // any instant of it
		r.kill()
		cancel()
		said := <-ended
		r.start()
		names := r.call("node", "list", "-o", "name")
		found[names]++
		if names != both && names != "n1\n" {
			t.Errorf("the nodes are %q after %s", names, said)
		}
		for _, name := range []string{"restore.proposed", "restore.pending"} {
			if _, err := os.Lstat(filepath.Join(state, name)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s is there: %v", name, err)
			}
		}
		if strings.Contains(r.log.String(), "left out") || strings.Contains(r.log.String(), "damaged") {
			t.Errorf("the state is damaged: %s", r.log)
		}
	}
	t.Logf("after kills the nodes were %v", found)
}

// TestRestoreSystemd: systemd hears that a start goes on and ends, also one anew with a backup;
// it hears of a stop once, when the server ends.
func TestRestoreSystemd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	said := make(chan string, 1000)
	go func() {
		defer close(said)
		for b := make([]byte, 200); ; {
			n, err := conn.Read(b)
			if err != nil {
				return
			}
			said <- string(b[:n])
		}
	}()
	begins := func() {
		t.Helper()
		if got := <-said; got != "EXTEND_TIMEOUT_USEC=30000000\nWATCHDOG=1" {
			t.Errorf("a start begins with %q", got)
		}
		for got := range said {
			if got == "READY=1" {
				return
			}
			if !strings.HasPrefix(got, "EXTEND_TIMEOUT_USEC") {
				t.Errorf("a start has %q", got)
			}
		}
	}
	r, file := newRestoring(t)
	begins()
	r.call("restore", file, "--now", "-y", "--state", filepath.Join(r.dir, "state"))
	begins()
	if err := r.server.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if got := <-said; !strings.HasPrefix(got, "STOPPING=1\nEXTEND_TIMEOUT_USEC=") {
		t.Errorf("got %q, want the stop", got)
	}
}
