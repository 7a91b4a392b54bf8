package e2e_test

import (
	"context"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"drover/e2e/buildcache"
	"drover/e2e/controlplane"
	"drover/e2e/debian"
	"drover/e2e/fixture"
	"drover/e2e/lab"
	"drover/e2e/lab/site"
)

// TestPackageBoots is a newcomer with two machines, who installs the Debian package in a fresh
// system, with the config that comes with it, and types what docs/install.md says. systemd starts
// the server: as its own user, in the sandbox of its unit. A machine that the config declares
// boots, and so does one that it does not, once it is adopted. A tiny system stands in for the node
// image, and the machines are online in the end. With DROVER_E2E_ALL=1 the newcomer also has a
// cluster and types what docs/clusters.md says, and the machines join.
func TestPackageBoots(t *testing.T) {
	loaders := t.TempDir()
	tiny := buildTiny(t, loaders)
	node := build(t)
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Minute)
	defer cancel()
	deb := hostPackage(ctx, t, node.Root)
	for _, tt := range []struct {
		name string
		root func(context.Context, io.Writer) (string, error)
	}{
		{"12", buildcache.Debian12},
		{"13", buildcache.Debian13},
	} {
		t.Run("Debian "+tt.name, func(t *testing.T) {
			files, err := tt.root(ctx, t.Output())
			if err != nil {
				t.Fatal(err)
			}
			n := newcomer{ctx: ctx, t: t, rack: openRack(t, "drover-e2e-deb"+tt.name, netip.MustParsePrefix("10.28.0.1/16"))}
			n.host = startDebian(t, n.rack, files)
			defer n.log()
			fixture.Until(ctx, t, "systemd is up", func() (bool, error) {
				out, err := n.host.Run(ctx, "systemctl is-system-running")
				return strings.TrimSpace(out) == "running", err
			})
			image := exec.CommandContext(ctx, "tar", "-C", tiny.Images, "--transform", "s/^"+site.TinyAMD64+"/debian-12/", "-c", site.TinyAMD64)
			if whole() {
				id, err := os.Readlink(filepath.Join(node.Images, site.Image, "current"))
				if err != nil {
					t.Fatal(err)
				}
				image = exec.CommandContext(ctx, "tar", "-C", node.Images, "-c", site.Image+"/current", site.Image+"/"+id)
			}
			n.install(deb, image, loaders)
			n.types("docs/install.md", "3. The config")
			n.reliable()
			if whole() {
				n.joins(startTenant(ctx, t, n.rack, node.Kubernetes))
			} else {
				n.boots()
			}
		})
	}
}

// newcomer types on a system of Debian, and switches machines on and off.
type newcomer struct {
	ctx  context.Context
	t    *testing.T
	rack *lab.Rack
	host *debian.System
}

// declared returns a machine that the README's config declares.
func declared() lab.Machine { return lab.Machine{Name: "declared", NICs: card("94:57:a5:d3:ec:f2")} }

// stray returns a machine that it does not declare. Once it is adopted it has another name here,
// because each machine that is powered on has files of its own.
func stray(name string) lab.Machine {
	return lab.Machine{Name: name, Firmware: lab.UEFI, NICs: card("52:54:00:77:01:01")}
}

// boots is the rest of docs/install.md, without a cluster.
func (n newcomer) boots() {
	n.types("docs/install.md", "5. Run as a service")
	off := n.powerOn(declared())
	n.online("m1c29", "10.28.36.173")
	off()
	off = n.powerOn(stray("stray"))
	n.online("node-525400770101", "10.28.72.10")
	n.types("docs/install.md", "6. Boot")
	off()
	defer n.powerOn(stray("adopted"))()
	n.online("m1c31", "10.28.36.175")
}

// joins is the rest of docs/install.md, until both machines are Ready in a cluster.
func (n newcomer) joins(cluster *controlplane.Cluster) {
	if err := n.host.Send(n.ctx, cluster.Admin, "tenant-a-admin.conf"); err != nil {
		n.t.Fatal(err)
	}
	n.types("docs/clusters.md", "Prepare a cluster")
	n.types("docs/install.md", "5. Run as a service")
	defer n.powerOn(declared())()
	off := n.powerOn(stray("stray"))
	n.online("m1c29", "10.28.36.173")
	n.online("node-525400770101", "10.28.72.10")
	n.types("docs/install.md", "6. Boot")
	off()
	defer n.powerOn(stray("adopted"))()
	listed := n.types("docs/install.md", "7. Ready")
	for name, address := range map[string]string{"m1c29": "10.28.36.173", "m1c31": "10.28.36.175"} {
		if !regexp.MustCompile(`(?m)^` + name + ` +compute +` + address + ` +ready `).MatchString(listed) {
			n.t.Errorf("drover node list does not have %s with %s as ready:\n%s", name, address, listed)
		}
		if node, err := site.NodeOf(n.ctx, cluster, name); err != nil || !node.Ready() || !slices.Contains(node.Addresses(), address) {
			n.t.Errorf("the cluster has %s as %+v, %v, want it Ready with %s", name, node, err, address)
		}
	}
}

// hostPackage makes the package for this host's architecture.
func hostPackage(ctx context.Context, t *testing.T, source string) string {
	t.Helper()
	packages, err := filepath.Glob(filepath.Join(debianPackage(ctx, t, source), "drover_*_"+runtime.GOARCH+".deb"))
	if err != nil || len(packages) != 1 {
		t.Fatalf("make deb made %q, %v, want one package", packages, err)
	}
	return packages[0]
}

// startTenant starts a control plane at the router's address on a rack. Nobody has prepared it.
func startTenant(ctx context.Context, t *testing.T, rack *lab.Rack, programs string) *controlplane.Cluster {
	t.Helper()
	cluster, err := controlplane.Start(ctx, controlplane.Config{
		Name: "tenant-a", BinDir: programs, Dir: filepath.Join(rack.Dir, "tenant-a"), Exec: rack.Command,
		Address: netip.MustParseAddr("10.28.0.1"), Port: 6443,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Stop)
	return cluster
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

// log logs what the server has logged, if the test has failed.
func (n newcomer) log() {
	if n.t.Failed() {
		out, _ := n.host.Run(n.ctx, "journalctl --no-pager -u drover | tail -60; drover node list; drover status")
		n.t.Log(out)
	}
}

// run runs a command line to its end, and returns what it printed.
func (n newcomer) run(line string) string {
	n.t.Helper()
	out, err := n.host.Run(n.ctx, line)
	n.t.Logf("$ %s\n%s", line, out)
	if err != nil {
		n.t.Fatal(err)
	}
	return out
}

// install installs the package, with the archives of an image and of loaders as an operator puts
// them there.
func (n newcomer) install(deb string, image *exec.Cmd, loaders string) {
	n.t.Helper()
	if err := n.host.Send(n.ctx, deb, "/drover.deb"); err != nil {
		n.t.Fatal(err)
	}
	n.run("apt-get install -y --no-install-recommends /drover.deb && mkdir -p /var/lib/drover/images /var/lib/drover/loaders")
	for to, pack := range map[string]*exec.Cmd{
		"/var/lib/drover/images":  image,
		"/var/lib/drover/loaders": exec.CommandContext(n.ctx, "tar", "-C", loaders, "-ch", "."), // links lead to files of this host
	} {
		unpack := n.host.Command(n.ctx, "tar -C "+to+" -x --no-same-owner")
		var err error
		if unpack.Stdin, err = pack.StdoutPipe(); err != nil {
			n.t.Fatal(err)
		}
		if err := pack.Start(); err != nil {
			n.t.Fatal(err)
		}
		out, err := unpack.CombinedOutput()
		if packed := pack.Wait(); packed != nil || err != nil {
			n.t.Fatalf("%s: %v, %v: %s", to, packed, err, out)
		}
	}
}

// reliable changes the config for machines that are emulated. A guest of a busy host may miss the
// ticks by which Linux finds out how its timer is wired, and panics: it need not find out.
func (n newcomer) reliable() {
	n.t.Helper()
	n.run("sed -i 's/ console=ttyS0,115200n8/& no_timer_check/' /etc/drover/drover.yaml && grep no_timer_check /etc/drover/drover.yaml")
}

// types types the commands of a section of a page, and returns what the last one printed.
func (n newcomer) types(page, section string) (out string) {
	n.t.Helper()
	for _, c := range commands(n.t, page, section) {
		out = n.run(c.Text)
	}
	return out
}

// powerOn powers a machine on. The function that it returns powers it off.
func (n newcomer) powerOn(m lab.Machine) (off func()) {
	n.t.Helper()
	g, err := n.rack.PowerOn(m)
	if err != nil {
		n.t.Fatal(err)
	}
	return func() {
		if n.t.Failed() {
			n.t.Logf("console of %s: %q", m.Name, g.Tail(40))
		}
		if err := g.PowerOff(); err != nil {
			n.t.Error(err)
		}
	}
}

// online waits until a machine is online as a node with an address.
func (n newcomer) online(node, address string) {
	n.t.Helper()
	fixture.Until(n.ctx, n.t, node+" is online", func() (bool, error) {
		out, err := n.host.Run(n.ctx, "drover boot show "+node)
		return strings.Contains(out, " online ") && strings.Contains(out, address), err
	})
}
