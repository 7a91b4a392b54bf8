package package_test

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
	"drover/e2e/manual"
)

// host is a system of Debian on which a test types.
type host struct {
	*debian.System
	t   *testing.T
	ctx context.Context
}

// start starts a system. Its network has what the README's config names.
func start(ctx context.Context, t *testing.T, root, init string) host {
	t.Helper()
	s, err := debian.Start(debian.Config{
		Root: root, Dir: t.TempDir(), Init: init,
		Network: "ip link add eth1 type bridge && ip addr add 10.28.0.2/16 dev eth1 && ip link set eth1 up",
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return host{s, t, ctx}
}

// run runs a command line, and returns what it printed without the last line feed.
func (h host) run(line string) string {
	h.t.Helper()
	out, err := h.Run(h.ctx, line)
	if err != nil {
		h.t.Fatal(err)
	}
	return strings.TrimSuffix(out, "\n")
}

// want fails the test unless a command line prints a text.
func (h host) want(line, want string) {
	h.t.Helper()
	out, _ := h.Run(h.ctx, line)
	if got := strings.TrimSpace(out); got != want {
		h.t.Errorf("%s: got %q, want %q", line, got, want)
	}
}

// packages are two versions of the package for this host's architecture.
type packages struct{ old, current string }

// makeDeb makes the package for an architecture.
func makeDeb(t *testing.T, arch string) string {
	t.Helper()
	dist := filepath.Join(t.TempDir(), "dist")
	cmd := exec.CommandContext(t.Context(), "make", "-C", "../..", "deb", "DIST="+dist, "ARCHES="+arch)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make deb: %v\n%s", err, out)
	}
	found, err := filepath.Glob(filepath.Join(dist, "drover_*.deb"))
	if err != nil || len(found) != 1 || !strings.HasSuffix(found[0], "_"+arch+".deb") {
		t.Fatalf("make deb made %q, %v, want one package", found, err)
	}
	return found[0]
}

// build builds the package as make dist does. The older version has the same programs.
func build(t *testing.T) packages {
	t.Helper()
	deb := makeDeb(t, runtime.GOARCH)
	p := packages{filepath.Join(filepath.Dir(deb), "old.deb"), deb}
	const older = `dpkg-deb -R "$1" "$2.d" && sed -i 's/^Version: .*/Version: 0.0.0~1/' "$2.d/DEBIAN/control" && dpkg-deb -Znone -b "$2.d" "$2"`
	if out, err := exec.CommandContext(t.Context(), "sh", "-c", older, "sh", p.current, p.old).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return p
}

// TestPackage installs the package in fresh systems of Debian 12 and 13: with systemd
// running, which starts the server, and without, as when an image is built. It needs root,
// and takes seconds once the parts of package buildcache are there.
func TestPackage(t *testing.T) {
	fixture.Root(t)
	if err := buildcache.Able(t.Context()); err != nil {
		fixture.Missing(t, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute) // lintian alone took eight on a busy host
	defer cancel()
	roots := map[string]string{}
	for name, root := range map[string]func(context.Context) (string, error){
		"Debian 12": func(ctx context.Context) (string, error) { return buildcache.Debian12(ctx, t.Output()) },
		"Debian 13": func(ctx context.Context) (string, error) { return buildcache.Debian13(ctx, t.Output()) },
		"checkers":  func(ctx context.Context) (string, error) { return buildcache.Checkers(ctx, t.Output()) },
	} {
		var err error
		if roots[name], err = root(ctx); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	p := build(t)
	t.Run("lintian", func(t *testing.T) { lint(ctx, t, roots["checkers"], p.current) })
	for _, name := range []string{"Debian 12", "Debian 13"} {
		t.Run(name, func(t *testing.T) {
			h := start(ctx, t, roots[name], debian.Systemd)
			fixture.Until(ctx, t, "systemd is up", func() (bool, error) {
				out, err := h.Run(ctx, "systemctl is-system-running")
				return strings.TrimSpace(out) == "running", err
			})
			life(h, p)
		})
		t.Run(name+" without systemd", func(t *testing.T) {
			h := start(ctx, t, roots[name], "")
			h.send(p)
			h.run("apt-get install -y --no-install-recommends ./old.deb && apt-get install -y --no-install-recommends ./current.deb")
			h.want("ls /etc/systemd/system/multi-user.target.wants/drover.service", "/etc/systemd/system/multi-user.target.wants/drover.service")
			h.run("apt-get purge -y drover")
			h.nothingLeft()
		})
	}
}

// lint checks the package with lintian, which fails for errors and warnings.
func lint(ctx context.Context, t *testing.T, root, deb string) {
	h := start(ctx, t, root, "")
	if err := h.Send(ctx, deb, "/drover.deb"); err != nil {
		t.Fatal(err)
	}
	t.Log(h.run("lintian --allow-root --profile debian --fail-on error,warning /drover.deb"))
}

// send copies both packages to /.
func (h host) send(p packages) {
	h.t.Helper()
	for to, from := range map[string]string{"/old.deb": p.old, "/current.deb": p.current} {
		if err := h.Send(h.ctx, from, to); err != nil {
			h.t.Fatal(err)
		}
	}
}

// life installs the older version, upgrades it, removes it, installs it again and purges
// it, as the Debian Policy Manual describes.
func life(h host, p packages) {
	h.send(p)
	h.run("apt-get install -y --no-install-recommends ./old.deb")
	h.want("stat -c '%U %G %a' /etc/drover", "root drover 750")
	h.want("systemctl is-enabled drover", "enabled")
	h.want("systemctl is-active drover", "inactive") // there is no config
	h.run(`cd /usr/share/drover/node-image && for from in $(sed -n 's/^COPY \(nodeimage[^ ]*\) .*/\1/p' Dockerfile.image); do ls "$from"; done && [ -x nodeimage/preload ]`)
	h.run("cd /usr/share/doc/drover && ls docs/install.md deploy/rbac.yaml && zgrep -q 'Apache License' third-party-notices.gz")
	h.configure()
	h.run("systemctl start drover") // returns when the server says that it is ready
	h.service()
	h.run("drover node add m2c01 --pool compute --mac 94:57:a5:d3:ed:02 --ip 10.28.36.201")

	before := h.run("systemctl show -p MainPID --value drover; sha256sum /etc/drover/*")
	h.run("apt-get install -y --no-install-recommends ./current.deb")
	after := h.run("systemctl show -p MainPID --value drover; sha256sum /etc/drover/*")
	pid, files, _ := strings.Cut(before, "\n")
	newPID, newFiles, _ := strings.Cut(after, "\n")
	if pid == newPID || files != newFiles {
		h.t.Errorf("before the upgrade %q, and then %q: want another process, and the same config", before, after)
	}
	h.service()
	h.kept()
	h.refusedUpgrade()
	h.watchdog()

	h.run("systemctl disable --now drover")
	h.run("dpkg -i current.deb") // again: what the administrator disabled stays so
	h.want("systemctl is-enabled drover", "disabled")
	h.want("systemctl is-active drover", "inactive")
	h.run("systemctl enable --now drover")

	h.run("apt-get remove -y drover")
	h.want("ls -d /usr/bin/drover 2>&1; for exe in /proc/[0-9]*/exe; do readlink $exe | grep drover; done", "ls: cannot access '/usr/bin/drover': No such file or directory")
	h.want("ls -d /etc/drover/drover.yaml /var/lib/drover/api.token", "/etc/drover/drover.yaml\n/var/lib/drover/api.token")
	h.run("apt-get install -y --no-install-recommends ./current.deb")
	h.service()
	h.kept()

	h.lastGood()
	h.keepsOthers()
	h.run("apt-get purge -y drover")
	h.want("ls -A /etc/drover", "drover.yaml") // people wrote it
	h.run("rm -r /etc/drover")
	h.nothingLeft()
	h.want("systemctl --failed --quiet --plain --no-legend", "")
}

// configure makes the config that the package brings, which is the README's, that of the server.
func (h host) configure() {
	h.t.Helper()
	text, err := manual.Block("../..", "README.md", "yaml")
	if err != nil {
		h.t.Fatal(err)
	}
	h.want("cat /usr/share/drover/drover.yaml", strings.TrimSpace(text))
	h.run("install -g drover -m 640 /usr/share/drover/drover.yaml /etc/drover/drover.yaml")
}

// refusedUpgrade checks that an upgrade leaves a server running whose config the new version
// refuses: the file, or a node of the API beside it.
func (h host) refusedUpgrade() {
	h.t.Helper()
	const file, pid = "/etc/drover/drover.yaml", "systemctl show -p MainPID --value drover"
	for edit, mistake := range map[string]string{"s/^pools:/pool:/": "pool", "s/m1c29/m2c01/": "m2c01"} {
		before := h.run(pid)
		h.run("cp -p " + file + " /etc/drover/good && sed -i '" + edit + "' " + file)
		fixture.WantText(h.t, "the upgrade", h.run("dpkg -i current.deb 2>&1"), mistake, "this version refuses "+file, "systemctl restart drover")
		h.want(pid, before)
		h.run("mv /etc/drover/good " + file + " && dpkg -i current.deb")
		h.service()
		if h.run(pid) == before {
			h.t.Error("the server was not restarted")
		}
	}
	h.kept()
}

// service checks that the server runs under systemd: as its user, with two capabilities,
// and with an exposure of 1.6 at most.
func (h host) service() {
	h.t.Helper()
	if out, _ := h.Run(h.ctx, "systemctl is-active drover"); strings.TrimSpace(out) != "active" {
		log, _ := h.Run(h.ctx, "systemctl status --no-pager --lines=60 drover; journalctl --no-pager -u drover | tail -60")
		h.t.Fatalf("the service is %s%s", out, log)
	}
	h.want("systemctl show -p Type -p WatchdogUSec drover", "Type=notify\nWatchdogUSec=1min")
	// CAP_NET_BIND_SERVICE is bit 10, and CAP_NET_RAW is bit 13.
	h.want(`stat -c %U /proc/$(systemctl show -p MainPID --value drover) && grep CapEff /proc/$(systemctl show -p MainPID --value drover)/status`, "drover\nCapEff:\t0000000000002400")
	h.run("systemd-analyze security --no-pager --threshold=16 drover.service")
	h.run("systemd-analyze security --no-pager --offline=true --threshold=16 /usr/lib/systemd/system/drover.service")
}

// kept checks that the state has the node that was added.
func (h host) kept() {
	h.t.Helper()
	fixture.WantText(h.t, "drover node list", h.run("drover node list"), "m2c01")
}

// lastGood checks that the service starts without the file of its config, from the last good
// copy in its state.
func (h host) lastGood() {
	h.t.Helper()
	h.run("mv /etc/drover/drover.yaml /etc/drover/moved && systemctl restart drover")
	h.service()
	h.run("mv /etc/drover/moved /etc/drover/drover.yaml && systemctl restart drover")
	h.service()
}

// keepsOthers checks what neither the service nor the purge of the package touches: the state of
// a farm's pod, which is another user's, and file systems that are mounted in the state.
func (h host) keepsOthers() {
	h.t.Helper()
	h.run("systemctl reset-failed drover && systemctl stop drover && mv /var/lib/drover /var/lib/aside && install -d -o 65532 -m 700 /var/lib/drover && touch /var/lib/drover/pod")
	h.run("systemctl start drover") // the condition does not hold
	h.want("systemctl is-active drover", "inactive")
	// Without dpkg the script leaves alone what systemd knows of the unit.
	const postrm = "cp /var/lib/dpkg/info/drover.postrm /run/postrm && /run/postrm purge 2>&1"
	fixture.WantText(h.t, "purge beside a pod", h.run(postrm), "/var/lib/drover stays: it does not belong to the user drover")
	h.want("stat -c %u /var/lib/drover && ls /var/lib/drover", "65532\npod")

	h.run("chown drover: /var/lib/drover && mkdir /var/lib/drover/images && mount -t tmpfs tmpfs /var/lib/drover/images && touch /var/lib/drover/images/image")
	fixture.WantText(h.t, "purge with a mount", h.run(postrm), "not all of /var/lib/drover could be removed")
	h.want("find /var/lib/drover -type f", "/var/lib/drover/images/image")
	h.run("umount /var/lib/drover/images && rm -r /var/lib/drover")

	// Root has made it: the service takes it.
	h.run("mv /var/lib/aside /var/lib/drover && chown -R root: /var/lib/drover && systemctl daemon-reload && systemctl reset-failed drover && systemctl enable --now drover")
	h.service()
	h.kept()
}

// watchdog stops the process of the server, which systemd then starts anew.
func (h host) watchdog() {
	h.t.Helper()
	h.run("mkdir -p /run/systemd/system/drover.service.d && printf '[Service]\nWatchdogSec=5\n' >/run/systemd/system/drover.service.d/test.conf && systemctl daemon-reload && systemctl restart drover")
	pid := h.run("systemctl show -p MainPID --value drover")
	h.run("kill -STOP " + pid)
	fixture.Until(h.ctx, h.t, "systemd starts a server anew that does not answer", func() (bool, error) {
		out, err := h.Run(h.ctx, "systemctl show -p NRestarts --value drover && systemctl is-active drover")
		return !strings.HasPrefix(out, "0\n") && strings.HasSuffix(out, "\nactive\n"), err
	})
	fixture.WantText(h.t, "the journal", h.run("journalctl --no-pager -u drover"), "Watchdog timeout")
	h.run("rm -r /run/systemd/system/drover.service.d && systemctl daemon-reload && systemctl restart drover")
}

// nothingLeft checks that no file of the package is there, but for what apt keeps.
func (h host) nothingLeft() {
	h.t.Helper()
	h.want("dpkg --audit; dpkg-query -W -f '${Status}' drover 2>&1 | grep -v 'no packages found'", "")
	h.want("find /etc /usr /var/lib /var/cache -name '*drover*'", "")
}

// TestPackageArm64 installs the package for arm64 in a fresh system of Debian 12, runs its
// programs, and purges it. This host emulates the processor.
func TestPackageArm64(t *testing.T) {
	fixture.Root(t)
	if err := buildcache.Able(t.Context()); err != nil {
		fixture.Missing(t, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	system, err := buildcache.NewArm64(ctx, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(t.TempDir(), "root")
	if out, err := exec.CommandContext(ctx, "cp", "-a", system.Root, root).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := exec.CommandContext(ctx, "cp", makeDeb(t, "arm64"), root+"/drover.deb").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	const line = `cd "$1" && mount --rbind /dev dev && mount -t proc proc proc
exec chroot . env -i LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin sh -ec '
dpkg -i /drover.deb && rm /drover.deb
drover version && /usr/lib/drover/drover-init --help
stat -c "%U %G %a" /etc/drover && getent passwd drover
dpkg --purge drover && dpkg --audit
echo "left: $(find /etc /usr /var/lib /var/cache -name "*drover*")."'`
	out, err := system.Command(ctx, line, root).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Logf("%s", out)
	fixture.WantText(t, "the package for arm64", string(out), "linux/arm64", "drover-init is the first process", "root drover 750", "/var/lib/drover:/usr/sbin/nologin", "left: .")
}
