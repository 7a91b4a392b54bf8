package e2e_test

import (
	"context"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"drover/e2e/buildcache"
	"drover/e2e/controlplane"
	"drover/e2e/fixture"
	"drover/e2e/lab"
	"drover/e2e/lab/site"
	"drover/e2e/manual"
)

// typist types commands of the manual on a host.
type typist struct {
	t    *testing.T
	host *manual.Host
	env  []string
}

// newTypist makes a host on the wire of a rack. Its commands run in dir.
func newTypist(t *testing.T, rack *lab.Rack, dir string, env ...string) typist {
	t.Helper()
	h, err := manual.NewHost(rack.Name, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	h.Dir = dir
	return typist{t, h, append(os.Environ(), env...)}
}

func (y typist) command(line string) *exec.Cmd {
	y.t.Logf("$ %s", line)
	cmd := y.host.Command(line)
	cmd.Env = y.env
	return cmd
}

// run runs a command to its end, and returns what it printed.
func (y typist) run(line string) string {
	y.t.Helper()
	out, err := y.command(line).CombinedOutput()
	if err != nil {
		y.t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return string(out)
}

// start starts a command that lasts, and returns the file that it prints to.
func (y typist) start(line string) string {
	y.t.Helper()
	out, err := os.Create(filepath.Join(y.t.TempDir(), "out"))
	if err != nil {
		y.t.Fatal(err)
	}
	defer out.Close()
	cmd := y.command(line)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		y.t.Fatal(err)
	}
	go func() { _ = cmd.Wait() }() // the end of the host ends it
	return out.Name()
}

// commands reads a section of a page.
func commands(t *testing.T, page, section string) (in []manual.Command) {
	t.Helper()
	all, err := manual.Read("..", page)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		if c.Section == section {
			in = append(in, c)
		}
	}
	if len(in) == 0 {
		t.Fatalf("%s: no commands in section %q", page, section)
	}
	return in
}

// openRack opens a rack without a server.
func openRack(t *testing.T, name string, addrs ...netip.Prefix) *lab.Rack {
	t.Helper()
	rack, err := lab.Open(name, t.TempDir(), addrs...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rack.Close(); err != nil {
			t.Error(err)
		}
	})
	return rack
}

// TestReadmeFarm types the README's "A farm" on a host as it describes one, and boots
// the machine that it adds, until the timeline shows that its system is up. The server is
// that of the package. The image is that of a tiny system; with DROVER_E2E_ALL=1 it is the
// Debian of make image.
func TestReadmeFarm(t *testing.T) {
	able(t)
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Minute)
	defer cancel()
	rack := openRack(t, "drover-e2e-readme")
	for _, args := range []string{
		"link add eth1 type veth peer name uplink", "link set uplink master " + lab.Bridge + " up",
		"addr add 10.28.0.2/16 dev eth1", "link set eth1 up",
	} {
		if _, err := rack.Run(ctx, "ip", strings.Fields(args)...); err != nil {
			t.Fatal(err)
		}
	}
	root, err := buildcache.SourceRoot()
	if err != nil {
		t.Fatal(err)
	}
	var env []string
	if !whole() {
		tiny, err := site.TinyRoot(ctx, t.Output())
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(tiny)
		env = append(env, "SOURCE=--exclude usr/lib/modules dir:"+tiny)
	}
	y := newTypist(t, rack, root, env...)
	config, err := manual.Block("..", "README.md", "yaml")
	if err != nil {
		t.Fatal(err)
	}
	write := y.host.Command("cat > /etc/drover/drover.yaml")
	write.Stdin = strings.NewReader(config)
	if out, err := write.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}

	for _, c := range commands(t, "docs/install.md", "From source") {
		if c.Text == "make build" || c.Text == "make install" {
			t.Logf("%s", y.run(c.Text))
		}
	}

	const node, mac = "m2c01", "94:57:a5:d3:ed:02"
	var log, watched string
	defer func() {
		if t.Failed() && log != "" {
			t.Logf("drover serve:\n%s", read(t, log))
		}
	}()
	for _, c := range commands(t, "README.md", "A farm") {
		switch c.Text {
		case "apt install ./drover_*.deb":
			t.Logf("%s", y.run("cd "+debianPackage(ctx, t, root)+" && "+c.Text))
		case "drover serve":
			log = y.start(c.Text)
			y.run("until curl -s http://127.0.0.1:8443/healthz; do sleep 0.2; done")
		case "drover boot watch " + node:
			watched = y.start(c.Text)
		default:
			t.Logf("%s", y.run(c.Text))
		}
	}
	if log == "" || watched == "" {
		t.Fatal("the README starts no server, or watches no boot")
	}
	g, err := rack.PowerOn(lab.Machine{Name: "readme", NICs: card(mac)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if t.Failed() {
			t.Logf("console:\n%s", strings.Join(g.Tail(60), "\n"))
		}
	}()
	fixture.Until(ctx, t, node+"'s system is up", func() (bool, error) {
		return strings.Contains(read(t, watched), "online"), nil
	})
	t.Logf("%.1f s after power-on:\n%s", time.Since(g.Started).Seconds(), y.run("drover boot show "+node))
}

// debianPackage makes the package of drover, and returns its folder. The host that installs it
// has no way out, and what packs it is fetched.
func debianPackage(ctx context.Context, t *testing.T, root string) string {
	t.Helper()
	dist := filepath.Join(t.TempDir(), "dist")
	out, err := exec.CommandContext(ctx, "make", "-C", root, "deb", "ARCHES="+runtime.GOARCH, "DIST="+dist).CombinedOutput()
	if err != nil {
		t.Fatalf("make deb: %v\n%s", err, out)
	}
	return dist
}

// TestManualClusters types docs/clusters.md, "Prepare a cluster", for a cluster that
// nobody has prepared.
func TestManualClusters(t *testing.T) {
	able(t)
	programs, err := buildcache.Kubernetes(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	rack := openRack(t, "drover-e2e-manual")
	cluster, err := controlplane.Start(t.Context(), controlplane.Config{
		Name: "tenant-a", BinDir: programs, Dir: filepath.Join(rack.Dir, "tenant-a"), Exec: rack.Command,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Stop)
	dir, bin := t.TempDir(), t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "drover/cmd/drover").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for to, from := range map[string]string{"tenant-a-admin.conf": cluster.Admin, "drover.yaml": ""} {
		text := ""
		if from != "" {
			text = read(t, from)
		} else if text, err = manual.Block("..", "README.md", "yaml"); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, to), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	y := newTypist(t, rack, dir, "PATH="+bin+":"+programs+":"+os.Getenv("PATH"), "HOME="+dir)
	y.run("cp drover.yaml /etc/drover/")
	for _, c := range commands(t, "docs/clusters.md", "Prepare a cluster") {
		t.Logf("%s", y.run(c.Text))
	}
}
