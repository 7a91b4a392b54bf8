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
	"drover/e2e/manual"
)

// TestPackageBoots is a newcomer with two machines, who installs the Debian package in fresh
// systems of Debian 12 and 13, with the README's config, and types what docs/install.md says.
// systemd starts the server: as its own user, in the sandbox of its unit. A machine that the config
// declares boots from it, and one that it does not, which becomes a node. A tiny system stands in
// for the node image.
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
			types(ctx, t, h, "5. Run as a service")
			powerOn := func(name, address string, m lab.Machine) { bootsAs(ctx, t, rack, h, name, address, m) }
			powerOn("m1c29", "10.28.36.173", lab.Machine{Name: "declared", NICs: card("94:57:a5:d3:ec:f2")})
			stray := lab.Machine{Name: "stray", Firmware: lab.UEFI, NICs: card("52:54:00:77:01:01")}
			powerOn("node-525400770101", "10.28.72.10", stray)
			types(ctx, t, h, "6. Boot")
			stray.Name = "adopted"
			powerOn("m1c31", "10.28.36.175", stray)
		})
	}
}

// startDebian starts a system with systemd until the end of the test. Its card eth1 is on the wire
// of a rack.
func startDebian(t *testing.T, rack *lab.Rack, root string) *debian.System {
	t.Helper()
	h, err := debian.Start(debian.Config{Root: root, Dir: t.TempDir(), Init: debian.Systemd, Network: "ip link add eth1 type veth peer name uplink netns " + rack.Name +
		" && ip addr add 10.28.0.2/16 dev eth1 && ip link set eth1 up && ip -n " + rack.Name + " link set uplink master " + lab.Bridge + " up"})
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
	config, err := manual.Block("..", "README.md", "yaml")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Run(ctx, "apt-get install -y --no-install-recommends /drover.deb && mkdir -p /var/lib/drover/images /var/lib/drover/loaders"); err != nil {
		t.Fatal(err)
	}
	if err := h.Write(ctx, strings.NewReader(config), "/etc/drover/drover.yaml"); err != nil {
		t.Fatal(err)
	}
	for to, pack := range map[string]*exec.Cmd{
		"/var/lib/drover/images":  exec.CommandContext(ctx, "tar", "-C", images, "--transform", "s/^"+site.TinyAMD64+"/debian-12/", "-c", site.TinyAMD64),
		"/var/lib/drover/loaders": exec.CommandContext(ctx, "tar", "-C", loaders, "-ch", "."), // links lead to files of this host
	} {
		unpack := h.Command(ctx, "tar -C "+to+" -x --no-same-owner")
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

// types types the commands of a section of docs/install.md.
func types(ctx context.Context, t *testing.T, h *debian.System, section string) {
	t.Helper()
	for _, c := range commands(t, "docs/install.md", section) {
		out, err := h.Run(ctx, c.Text)
		t.Logf("$ %s\n%s", c.Text, out)
		if err != nil {
			t.Fatal(err)
		}
	}
}

// bootsAs powers a machine on, until it is online as a node with an address, and off.
func bootsAs(ctx context.Context, t *testing.T, rack *lab.Rack, h *debian.System, node, address string, m lab.Machine) {
	t.Helper()
	g, err := rack.PowerOn(m)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if t.Failed() {
			t.Logf("console: %q", g.Tail(40))
		}
		if err := g.PowerOff(); err != nil {
			t.Error(err)
		}
	}()
	fixture.Until(ctx, t, node+" is online", func() (bool, error) {
		out, err := h.Run(ctx, "drover boot show "+node)
		return strings.Contains(out, " online ") && strings.Contains(out, address), err
	})
}
