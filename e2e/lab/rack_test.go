package lab_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/e2e/lab"
)

// need skips a test, loudly, where there can be no rack. In CI that is a failure.
func need(t *testing.T, programs ...string) {
	t.Helper()
	var why error
	if os.Geteuid() != 0 {
		why = errors.New("not root")
	}
	for _, name := range programs {
		if _, err := exec.LookPath(name); err != nil {
			why = errors.Join(why, err)
		}
	}
	if why != nil {
		fixture.Missing(t, why)
	}
}

// rack opens a rack of the test's own.
func rack(t *testing.T) *lab.Rack {
	t.Helper()
	need(t, "ip", "tcpdump", "qemu-system-x86_64")
	name := fmt.Sprintf("drover-lab-%d", os.Getpid())
	r, err := lab.Open(name, t.TempDir(), netip.MustParsePrefix("10.77.0.1/24"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Join("/run/netns", name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the namespace is still there: %v", err)
		}
		if _, err := os.Stat(filepath.Join("/run", name+".lock")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the lock is still there: %v", err)
		}
	})
	return r
}

func TestRackHasItsOwnNetwork(t *testing.T) {
	r := rack(t)
	l, err := r.Listen("tcp", "10.77.0.1:80")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "inside") })}
	go func() { _ = srv.Serve(l) }()
	defer srv.Close()
	resp, err := r.HTTPClient().Get("http://10.77.0.1/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got, err := io.ReadAll(resp.Body); string(got) != "inside" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	out, err := r.Run(t.Context(), "ip", "-o", "link")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		if !strings.Contains(line, ": lo:") && !strings.Contains(line, ": br0:") {
			t.Errorf("an interface that leads somewhere: %s", line)
		}
	}
}

func TestProcessIsAskedThenKilled(t *testing.T) {
	r := rack(t)
	start := func(name, script string) *lab.Process {
		t.Helper()
		p, err := r.Start(name, exec.Command("sh", "-c", script))
		if err != nil {
			t.Fatal(err)
		}
		for !strings.Contains(read(t, p.Log), "up") {
			time.Sleep(10 * time.Millisecond)
		}
		return p
	}
	polite := start("polite", "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done")
	if err := polite.Stop(time.Minute); err != nil {
		t.Errorf("stop: %v", err)
	}
	if got := read(t, polite.Log); !strings.Contains(got, "bye") {
		t.Errorf("log %q: was not asked to end", got)
	}
	deaf := start("deaf", "trap '' TERM; echo up; while :; do sleep 0.05; done")
	if err := deaf.Stop(300 * time.Millisecond); err == nil || !strings.Contains(err.Error(), "did not end") {
		t.Errorf("got %v, want that it did not end when asked", err)
	}
	if deaf.Running() {
		t.Error("still runs")
	}
}

// TestLeftOverRack kills a process that has a rack open with something running
// in it, and opens the rack again.
func TestLeftOverRack(t *testing.T) {
	if dir := os.Getenv("LAB_TEST_CRASH"); dir != "" {
		crash(t, dir)
		return
	}
	need(t, "ip")
	dir, name := t.TempDir(), fmt.Sprintf("drover-crash-%d", os.Getpid())
	child := exec.Command(os.Args[0], "-test.run=^TestLeftOverRack$")
	child.Env = append(os.Environ(), "LAB_TEST_CRASH="+dir, "LAB_TEST_NAME="+name)
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	pidfile := filepath.Join(dir, "sleep.log")
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if b, err := os.ReadFile(pidfile); err == nil && len(b) > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the child did not open its rack")
		}
	}
	if _, err := lab.Open(name, dir); !errors.Is(err, lab.ErrInUse) {
		t.Errorf("open while in use: got %v, want %v", err, lab.ErrInUse)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // it was killed
	var pid int
	if _, err := fmt.Sscan(read(t, pidfile), &pid); err != nil {
		t.Fatal(err)
	}
	r, err := lab.Open(name, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	// A dead process has no command line, even while nobody has waited for it.
	if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && len(b) > 0 {
		t.Errorf("process %d of the crashed rack still runs: %q", pid, b)
	}
}

// crash opens a rack and waits to be killed.
func crash(t *testing.T, dir string) {
	r, err := lab.Open(os.Getenv("LAB_TEST_NAME"), dir)
	if err != nil {
		t.Fatal(err)
	}
	// setsid: out of the process group that the lab knows of.
	if _, err := r.Start("sleep", exec.Command("setsid", "-f", "sh", "-c", "echo $$; exec sleep 300")); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Hour) // not select {}: Go ends a program all of whose goroutines are blocked
}

// TestMachinesAskForTheirBoot switches machines on and listens for the first
// thing that firmware says: a DHCPDISCOVER, from the card that is to boot.
func TestMachinesAskForTheirBoot(t *testing.T) {
	for _, tt := range []struct {
		machine lab.Machine
		console string
		want    string // MAC
		never   string
	}{
		{lab.Machine{Name: "bios", Memory: 256, NICs: []lab.NIC{{MAC: "52:54:00:77:0f:01", Boot: true}}}, "^iPXE", "52:54:00:77:0f:01", "52:54:00:77:0f:02"},
		{lab.Machine{Name: "uefi", Firmware: lab.UEFI, Memory: 256, NICs: []lab.NIC{
			{MAC: "52:54:00:77:0f:02", Dark: true}, {MAC: "52:54:00:77:0f:03", Boot: true},
		}}, "Start PXE over IPv4", "52:54:00:77:0f:03", "52:54:00:77:0f:02"},
	} {
		t.Run(tt.machine.Name, func(t *testing.T) {
			r := rack(t)
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			wire, err := r.Capture(ctx, filepath.Join(r.Dir, "wire.pcap"))
			if err != nil {
				t.Fatal(err)
			}
			g, err := r.PowerOn(tt.machine)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := g.WaitConsole(ctx, regexp.MustCompile(tt.console)); err != nil {
				t.Fatalf("%v\n%s", err, strings.Join(g.Tail(20), "\n"))
			}
			client := regexp.MustCompile(`BOOTP/DHCP, Request from ` + tt.want)
			for !client.MatchString(read(t, wire.Text())) {
				select {
				case <-ctx.Done():
					t.Fatalf("no DISCOVER from %s\n%s", tt.want, strings.Join(g.Tail(20), "\n"))
				case <-time.After(100 * time.Millisecond):
				}
			}
			if strings.Contains(read(t, wire.Text()), tt.never) {
				t.Errorf("%s was heard on the bridge", tt.never)
			}
			if err := wire.Stop(); err != nil {
				t.Error(err)
			}
			if n, err := g.DiskUsed(); n != 0 || err != nil {
				t.Errorf("%d bytes of the disk were written, %v", n, err)
			}
			if err := g.PowerOff(); err != nil || g.Running() {
				t.Errorf("power off: %v, running %t", err, g.Running())
			}
		})
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
