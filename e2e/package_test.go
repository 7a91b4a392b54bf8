package e2e_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"drover/e2e/buildcache"
	"drover/e2e/debian"
	"drover/e2e/fixture"
	"drover/e2e/lab"
	"drover/e2e/lab/site"
)

// TestPackageBoots installs the Debian package in fresh systems of Debian 12 and 13, whose
// systemd starts the server: as its own user, in the sandbox of its unit. A machine boots from it.
// A tiny system stands in for the node image.
func TestPackageBoots(t *testing.T) {
	b := buildTiny(t, t.TempDir())
	source, err := buildcache.SourceRoot()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	dist := debianPackage(ctx, t, source)
	packages, err := filepath.Glob(filepath.Join(dist, "drover_*_"+runtime.GOARCH+".deb"))
	if err != nil || len(packages) != 1 {
		t.Fatalf("make deb made %q, %v, want one package", packages, err)
	}
	for name, root := range map[string]func() (string, error){
		"12": func() (string, error) { return buildcache.Debian12(ctx, t.Output()) },
		"13": func() (string, error) { return buildcache.Debian13(ctx, t.Output()) },
	} {
		t.Run("Debian "+name, func(t *testing.T) {
			files, err := root()
			if err != nil {
				t.Fatal(err)
			}
			rack := openRack(t, "drover-e2e-deb"+name)
			h := startDebian(t, rack, files)
			fixture.Until(ctx, t, "systemd is up", func() (bool, error) {
				out, err := h.Run(ctx, "systemctl is-system-running")
				return strings.TrimSpace(out) == "running", err
			})
			installPackage(ctx, t, h, packages[0], b.Images, b.Loaders)
			defer func() {
				if t.Failed() {
					out, _ := h.Run(ctx, "journalctl --no-pager -u drover | tail -60")
					t.Log(out)
				}
			}()
			if _, err := h.Run(ctx, "systemctl start drover"); err != nil { // returns when the server is ready
				t.Fatal(err)
			}
			bootsFrom(ctx, t, rack, h)
		})
	}
}

// startDebian starts a system with systemd until the end of the test. Its card eth1 is on the wire
// of a rack.
func startDebian(t *testing.T, rack *lab.Rack, root string) *debian.System {
	t.Helper()
	h, err := debian.Start(debian.Config{Root: root, Dir: t.TempDir(), Init: debian.Systemd, Network: "ip link add eth1 type veth peer name uplink netns " + rack.Name +
		" && ip addr add 10.77.0.1/24 dev eth1 && ip link set eth1 up && ip -n " + rack.Name + " link set uplink master " + lab.Bridge + " up"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// installPackage installs the package, with a config, images and loaders as an operator puts them
// there.
func installPackage(ctx context.Context, t *testing.T, h *debian.System, deb, images, loaders string) {
	t.Helper()
	if err := h.Send(ctx, deb, "/drover.deb"); err != nil {
		t.Fatal(err)
	}
	config := strings.Replace(read(t, "testdata/appliance.yaml"), "interfaces: [br0]", "interfaces: [eth1]", 1)
	config = strings.Replace(config, "image: debian-12", "image: "+site.TinyAMD64, 1)
	if err := h.Write(ctx, strings.NewReader(config), "/drover.yaml"); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"apt-get install -y --no-install-recommends /drover.deb",
		"install -g drover -m 640 /drover.yaml /etc/drover/ && drover check",
		"install -d -o drover -g drover /var/lib/drover/images /var/lib/drover/loaders",
	} {
		if _, err := h.Run(ctx, line); err != nil {
			t.Fatal(err)
		}
	}
	for to, pack := range map[string]*exec.Cmd{
		"/var/lib/drover/images":  exec.CommandContext(ctx, "tar", "-C", images, "-c", site.TinyAMD64),
		"/var/lib/drover/loaders": exec.CommandContext(ctx, "tar", "-C", loaders, "-ch", "."), // links lead to files of this host
	} {
		unpack := h.Command(ctx, "tar -C "+to+" -x --no-same-owner && chown -R drover:drover "+to)
		var err error
		if unpack.Stdin, err = pack.StdoutPipe(); err != nil {
			t.Fatal(err)
		}
		if err := pack.Start(); err != nil {
			t.Fatal(err)
		}
		out, err := unpack.CombinedOutput()
		if packed := pack.Wait(); packed != nil || err != nil {
			t.Fatalf("%s: %v, %v: %s", to, packed, err, out)
		}
	}
}

// bootsFrom boots a machine of the rack.
func bootsFrom(ctx context.Context, t *testing.T, rack *lab.Rack, h *debian.System) {
	t.Helper()
	g, err := rack.PowerOn(lab.Machine{Name: "n1", NICs: card("52:54:00:77:0a:01")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("console: %q", g.Tail(40))
		}
		if err := g.PowerOff(); err != nil {
			t.Error(err)
		}
	})
	says(ctx, t, g, "tiny: done")
	out, err := h.Run(ctx, "drover boot show n1")
	if err != nil {
		t.Fatal(err)
	}
	t.Log(out)
	fixture.WantText(t, "the boot", out, "script", "online") // the card has iPXE: it loads no loader
}
