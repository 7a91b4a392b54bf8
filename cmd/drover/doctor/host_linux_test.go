package doctor

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"drover/cmd/drover/cli"
	"drover/e2e/fixture"
	"drover/e2e/netns"
	"drover/imagebuild"
	"drover/server/certificate"
)

// host is the host of a server that lacks nothing, in a namespace of its own, until a test
// breaks it.
type host struct {
	*doctor
	net, peer netns.Namespace // connected by the interface wire
	inside    func(t *testing.T)
	dir       string
}

// The config of a good host. API servers are at 10.99.0.1:6443.
const goodConfig = `server: {interfaces: [wire], apiTLS: {cert: api-ca.crt, key: api.key}}
subnets: [{cidr: 10.99.0.0/24}]
clusters: [{name: a, kubeconfig: a.kubeconfig}]
pools: [{name: web, image: debian, cluster: a, nodes: [{name: m1, macs: ["52:54:00:77:01:01"], ip: 10.99.0.9}]}]
`

const goodKubeconfig = `current-context: x
contexts: [{name: x, context: {cluster: a, user: a}}]
clusters: [{name: b, cluster: {server: "https://10.99.0.1:1"}}, {name: a, cluster: {server: "https://10.99.0.1:6443"}}]
users: [{name: b, user: {token: x.eyJleHAiOjF9.y}}, {name: a, user: {token: abcdef}}]
`

// newHost makes a good host.
func newHost(t *testing.T, server, peer netns.Namespace) *host {
	t.Helper()
	m := imagebuild.Manifest{Name: "debian", KernelVersion: "6.1", Platform: "linux/amd64", Files: map[string]imagebuild.File{}}
	for _, name := range []string{"kernel", "initrd", "root.squashfs"} {
		m.Files[name] = imagebuild.File{Size: 1, SHA256: strings.Repeat("0", 64)}
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	image := "state/images/debian/" + m.ID()
	dir := fixture.Tree(t, map[string]string{
		"drover.yaml": goodConfig, "a.kubeconfig": goodKubeconfig,
		"state/loaders/undionly.kpxe": "loader", "state/loaders/snponly.efi": "loader",
		image + "/manifest.json": string(text), image + "/kernel": "k", image + "/initrd": "i", image + "/root.squashfs": "s",
	})
	if err := (&certificate.Own{Dir: dir, Names: func() []string { return nil }, Log: slog.New(slog.DiscardHandler), Now: time.Now}).Open(); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(dir, "state")
	if err := errors.Join(os.Symlink(m.ID(), filepath.Join(state, "images/debian/current")), os.WriteFile(filepath.Join(state, "api.token"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	h := &host{net: server, peer: peer, dir: dir, inside: func(*testing.T) {}, doctor: &doctor{
		config: filepath.Join(dir, "drover.yaml"), state: state, images: filepath.Join(state, "images"), loaders: filepath.Join(state, "loaders"),
		wait: 100 * time.Millisecond, now: func() time.Time { return time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC) },
	}}
	var flags cobra.Command
	h.api.Flags(&flags)
	if err := flags.ParseFlags([]string{"--api", "http://127.0.0.1:1", "--token-file", filepath.Join(dir, "none")}); err != nil {
		t.Fatal(err)
	}
	return h
}

// write replaces a file of the host.
func (h *host) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(h.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// edit replaces a part of the config.
func (h *host) edit(t *testing.T, old, text string) {
	t.Helper()
	if !strings.Contains(goodConfig, old) {
		t.Fatalf("no %q in the config", old)
	}
	h.write(t, "drover.yaml", strings.Replace(goodConfig, old, text, 1))
}

// ip changes the network of the host, and the end of the test changes it back.
func (h *host) ip(t *testing.T, change, back string) {
	t.Helper()
	h.net.IP(t, strings.Fields(change)...)
	t.Cleanup(func() { h.net.IP(t, strings.Fields(back)...) })
}

// ask has the doctor examine the host.
func (h *host) ask(t *testing.T) []cli.Finding {
	t.Helper()
	h.findings = nil
	h.net.In(t, func() error {
		h.inside(t)
		h.examine(t.Context())
		return nil
	})
	return h.findings
}

// prepared are faults of a host, each with what doctor says of it.
var prepared = []struct {
	name        string
	breaks      func(*testing.T, *host)
	check, text string
	result      cli.Result
	remedy      string
}{
	{"config refused", func(t *testing.T, h *host) { h.edit(t, "subnets", "subnet") }, "config", `unknown key "subnet"`, fault, "drover check"},
	{"interface missing", func(t *testing.T, h *host) { h.edit(t, "wire", "eth9") }, "interface", "eth9: ", fault, "ip link"},
	{"interface down", func(t *testing.T, h *host) { h.ip(t, "link set wire down", "link set wire up") }, "interface", "wire is down", fault, "ip link set wire up"},
	{"cable unplugged", func(t *testing.T, h *host) {
		h.peer.IP(t, "link", "set", "wire", "down")
		t.Cleanup(func() { h.peer.IP(t, "link", "set", "wire", "up") })
	}, "interface", "wire has no carrier", fault, "plug in"},
	{"interface without address", func(t *testing.T, h *host) {
		h.net.IP(t, "link", "set", "wire", "addrgenmode", "none")
		h.ip(t, "address flush dev wire", "address add 10.99.0.1/24 dev wire")
	}, "interface", "wire has no address", fault, "ip address add"},
	{"address of another host", func(t *testing.T, h *host) { h.edit(t, "server: {", "server: {address: 10.99.0.77, ") }, "address", "which this host does not have", fault, "correct address:"},
	{"port taken", func(t *testing.T, h *host) { h.listen(t, "udp4", ":69") }, "ports", "tftp: another program has udp port :69", fault, "ss -lnp"},
	{"another DHCP server", func(t *testing.T, h *host) { h.otherDHCP(t) }, "dhcp", "wire: another DHCP server answers: 10.99.0.2", fault, "proxy"},
	{"firewall", func(t *testing.T, h *host) {
		h.iptables(t, "-P", "INPUT", "DROP")
		t.Cleanup(func() { h.iptables(t, "-P", "INPUT", "ACCEPT") })
	}, "firewall", "67, 69, 80", fault, "accept UDP 67"},
	{"loader missing", func(t *testing.T, h *host) { h.remove(t, "state/loaders/snponly.efi") }, "loaders", "for uefi", fault, "drover loaders install"},
	{"TFTP does not answer", func(_ *testing.T, h *host) { h.running = true }, "tftp", "undionly.kpxe from 10.99.0.1:69: ", fault, "log"},
	{"image missing", func(t *testing.T, h *host) { h.edit(t, "image: debian", "image: fedora") }, "images", `pool web: image "fedora"`, fault, "drover image build --name fedora"},
	{"image broken", func(t *testing.T, h *host) { h.cut(t, "state/images/debian/current/kernel") }, "images", "pool web: ", fault, "build it again"},
	{"kubeconfig missing", func(t *testing.T, h *host) { h.remove(t, "a.kubeconfig") }, "clusters", "no such file", fault, "drover cluster prepare"},
	{"kubeconfig broken", func(t *testing.T, h *host) { h.write(t, "a.kubeconfig", "a: b") }, "clusters", "it is not a kubeconfig", fault, "put a kubeconfig there"},
	{"cluster unreachable", func(t *testing.T, h *host) {
		h.write(t, "a.kubeconfig", strings.Replace(goodKubeconfig, "6443", "6444", 1))
	}, "clusters", "its API server does not answer: ", fault, "curl -k https://10.99.0.1:6444/livez"},
	{"cluster without a URL", func(t *testing.T, h *host) {
		h.write(t, "a.kubeconfig", strings.Replace(goodKubeconfig, "https://10.99.0.1:6443", "nonsense", 1))
	}, "clusters", `its server "nonsense" is no URL`, fault, "https://HOST:PORT"},
	{"credential ended", func(t *testing.T, h *host) {
		h.write(t, "a.kubeconfig", strings.Replace(goodKubeconfig, "abcdef", "x.eyJleHAiOjF9.y", 1))
	}, "clusters", "its credential ended at 1970", fault, "docs/clusters.md"},
	{"certificate near its end", func(_ *testing.T, h *host) {
		h.now = func() time.Time { return time.Now().AddDate(10, 0, -9) }
	}, "certificates", "ends at ", warning, "renew it"},
	{"certificate missing", func(t *testing.T, h *host) { h.remove(t, certificate.OwnCert) }, "certificates", "server.apiTLS: ", fault, "put a certificate there"},
	{"state of another owner", func(t *testing.T, h *host) {
		if err := os.Chown(filepath.Join(h.state, "api.token"), 12345, -1); err != nil {
			t.Fatal(err)
		}
	}, "state", "belongs to user 12345", fault, "chown --reference="},
	{"secret that others read", func(t *testing.T, h *host) {
		if err := os.Chmod(filepath.Join(h.state, "api.token"), 0o644); err != nil {
			t.Fatal(err)
		}
	}, "state", "is a secret that others can read", fault, "chmod 600 "},
	{"disk full", func(_ *testing.T, h *host) { h.inside = func(t *testing.T) { mount(t, h.images, 0) } }, "disk", "has room for ", fault, "make room"},
	{"disk read-only", func(_ *testing.T, h *host) { h.inside = func(t *testing.T) { mount(t, h.state, unix.MS_RDONLY) } }, "disk", "mounted read-only", fault, "remount,rw"},
	{"clock wrong", func(_ *testing.T, h *host) { h.now = func() time.Time { return time.Unix(0, 0) } }, "clock", "the clock says 1970-01-01", fault, "chrony"},
}

// TestPreparedFaults: nothing is wrong with a good host; each of the prepared faults is found
// and has its remedy.
func TestPreparedFaults(t *testing.T) {
	netns.Need(t, "iptables", "iptables-save")
	id := fmt.Sprintf("drvfau%d", os.Getpid())
	server, peer := netns.NewNamespace(t, id+"s"), netns.NewNamespace(t, id+"p")
	server.Link(t, "wire", peer, "wire")
	server.IP(t, "address", "add", "10.99.0.1/24", "dev", "wire")
	peer.IP(t, "address", "add", "10.99.0.2/24", "dev", "wire")
	peer.IP(t, "link", "set", "wire", "up")
	server.IP(t, "link", "set", "wire", "up")
	(&host{net: server}).listen(t, "tcp4", ":6443") // the cluster's API server

	good := newHost(t, server, peer)
	fixture.Eventually(t, "the carrier of a new wire", func() bool { return good.find(t, "interface", ok, "") })
	for _, f := range good.ask(t) {
		if f.Result == fault || f.Result == warning && f.Check != "clock" { // nothing keeps the clock of a host of tests
			t.Errorf("a good host: %+v", f)
		}
	}
	for _, tt := range prepared {
		t.Run(tt.name, func(t *testing.T) {
			h := newHost(t, server, peer)
			tt.breaks(t, h)
			fixture.Eventually(t, "the fault", func() bool { return h.find(t, tt.check, tt.result, tt.text) }) // a packet can be lost
			i := slices.IndexFunc(h.findings, func(f cli.Finding) bool {
				return f.Check == tt.check && f.Result == tt.result && strings.Contains(f.Text, tt.text)
			})
			if got := h.findings[i].Remedy; !strings.Contains(got, tt.remedy) {
				t.Errorf("got the remedy %q, want %q", got, tt.remedy)
			}
		})
	}
}

// find reports whether the doctor has a finding now.
func (h *host) find(t *testing.T, check string, result cli.Result, text string) bool {
	t.Helper()
	return slices.ContainsFunc(h.ask(t), func(f cli.Finding) bool {
		return f.Check == check && f.Result == result && strings.Contains(f.Text, text)
	})
}

func (h *host) remove(t *testing.T, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(h.dir, name)); err != nil {
		t.Fatal(err)
	}
}

func (h *host) cut(t *testing.T, name string) {
	t.Helper()
	if err := os.Truncate(filepath.Join(h.dir, name), 0); err != nil {
		t.Fatal(err)
	}
}

// listen takes a port of the host until the end of the test.
func (h *host) listen(t *testing.T, network, address string) {
	t.Helper()
	h.net.In(t, func() error {
		if strings.HasPrefix(network, "udp") {
			c, err := net.ListenPacket(network, address)
			if err == nil {
				t.Cleanup(func() { _ = c.Close() })
			}
			return err
		}
		l, err := net.Listen(network, address)
		if err == nil {
			t.Cleanup(func() { _ = l.Close() })
		}
		return err
	})
}

// otherDHCP lets another host of the wire answer DISCOVERs.
func (h *host) otherDHCP(t *testing.T) {
	t.Helper()
	h.wait = time.Second
	h.peer.IP(t, "route", "replace", "default", "dev", "wire") // for its broadcasts
	var conn net.PacketConn
	h.peer.In(t, func() (err error) {
		conn, err = net.ListenPacket("udp4", ":67")
		return err
	})
	done := make(chan error, 1)
	go func() { done <- offer(conn, [4]byte{10, 99, 0, 2}) }()
	t.Cleanup(func() {
		_ = conn.Close()
		if err := <-done; !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
}

func (h *host) iptables(t *testing.T, args ...string) {
	t.Helper()
	h.net.In(t, func() error {
		out, err := exec.Command("iptables", args...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("iptables: %w: %s", err, out)
		}
		return nil
	})
}

// mount mounts a small file system on a directory, in a mount namespace of this thread.
func mount(t *testing.T, dir string, flags uintptr) {
	t.Helper()
	if err := errors.Join(unix.Unshare(unix.CLONE_NEWNS|unix.CLONE_FS), unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.Mount("tmpfs", dir, "tmpfs", flags, "size=3m")); err != nil {
		t.Fatal(err)
	}
}
