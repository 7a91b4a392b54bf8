package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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

	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/dhcpv6/nclient6"
	"github.com/insomniacslk/dhcp/iana"

	"drover/e2e/fixture"
	"drover/e2e/netns"
	"drover/node/client"
	"drover/node/cmdline"
	"drover/node/fetch"
	"drover/node/nic"
	"drover/node/retry"
	"drover/pools"
	"drover/pools/boots"
)

// ipv6Farm has nothing of IPv4.
const ipv6Farm = `server: {interfaces: [srv], routerAdvertisements: managed}
subnets: [{cidr: "fd00:28::/64", dns: ["fd00:28::53"], domain: example.org}]
pools:
  - name: web
    image: debian-12
    nodes: [{name: m1, macs: ["52:54:00:77:00:01"], ip6: "fd00:28::10"}]
`

// TestIPv6 boots a node that has IPv6 only, with drover serve: it leases its address,
// fetches image, by HTTP and by TFTP, and config, sends an event, and leaves the card as it
// was.
func TestIPv6(t *testing.T) {
	netns.Need(t)
	dir, content := t.TempDir(), []byte(strings.Repeat("the root of a node\n", 100_000))
	drover, config := filepath.Join(dir, "drover"), filepath.Join(dir, "drover.yaml")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", drover, "drover/cmd/drover").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	if err := os.WriteFile(config, []byte(ipv6Farm), 0o600); err != nil {
		t.Fatal(err)
	}
	writeImage(t, filepath.Join(dir, "state", "images", "debian-12"), content)
	id := fmt.Sprintf("init6-%d", os.Getpid())
	srv, node := netns.NewNamespace(t, id+"s"), netns.NewNamespace(t, id+"n")
	srv.Link(t, "srv", node, "eth0")
	node.IP(t, "link", "set", "eth0", "address", testMAC.String())
	srv.IP(t, "link", "set", "srv", "up")
	srv.IP(t, "addr", "add", "fd00:28::2/64", "dev", "srv", "nodad")
	srv.Daemon(t, drover, "serve", "-c", config, "--state", filepath.Join(dir, "state"), "--loaders", dir)

	fixture.Retry(t, "server", func() error {
		c, err := srv.Dial(t.Context(), "tcp", "[fd00:28::2]:80")
		if err == nil {
			c.Close()
		}
		return err
	})
	var n *nic.NIC
	node.In(t, func() (err error) {
		if n, err = nic.Find(t.Context(), testMAC, func() {}, t.Logf); err != nil {
			return err
		}
		n.Server = "fd00:28::2"
		return n.Up(t.Context())
	})
	fixture.Retry(t, "address", func() error { return node.Do(func() error { return n.Connect(t.Context()) }) })
	if l := n.Lease; l.Address != netip.MustParsePrefix("fd00:28::10/128") || !l.Server.IsValid() ||
		l.ResolvConf() != "# from DHCP, by drover-init\nnameserver fd00:28::53\nsearch example.org\n" {
		t.Errorf("got lease %+v", l)
	}
	fixture.Eventually(t, "route from a router advertisement", func() bool {
		out, err := node.Command("ip", "-6", "route", "show", "fd00:28::/64").CombinedOutput()
		return err == nil && strings.Contains(string(out), "dev eth0")
	})
	node.In(t, func() error { return firmwareSolicits(t.Context()) })
	web := &http.Client{Transport: &http.Transport{DialContext: node.Dial}}
	args := scriptArgs(t, web)
	fetchRoot(t, node, web, args, content)
	s := &client.Server{Base: args.URL, MAC: args.MAC, Nonce: args.Nonce, Client: web}
	askConfig(t, s)
	if err := s.SendEvent(t.Context(), boots.Event{Step: boots.StepConfig, Uptime: 1}); err != nil {
		t.Error(err)
	}
	node.In(t, func() error {
		again, err := n.Renew(t.Context(), n.Lease)
		if err != nil || again.Address != n.Lease.Address {
			t.Errorf("renew: got %s, %v", again.Address, err)
		}
		return n.Down()
	})
	if out, err := node.Command("ip", "-6", "addr", "show", "dev", "eth0").CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("afterwards: %v\n%s", err, out)
	}
}

// firmwareSolicits sends the SOLICIT of a UEFI firmware: a boot begins with it.
func firmwareSolicits(ctx context.Context) error {
	c, err := nclient6.New("eth0")
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Solicit(ctx, dhcpv6.WithArchType(iana.EFI_X86_64), func(d dhcpv6.DHCPv6) {
		d.AddOption(&dhcpv6.OptVendorClass{EnterpriseNumber: 343, Data: [][]byte{[]byte("PXEClient:Arch:00007:UNDI:003000")}})
	})
	return err
}

// scriptArgs fetches the script of iPXE and reads its kernel command line.
func scriptArgs(t *testing.T, web *http.Client) cmdline.Args {
	t.Helper()
	resp, err := web.Get("http://[fd00:28::2]/boot/" + testMAC.Dashed())
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	args, err := cmdline.Parse(strings.TrimPrefix(regexp.MustCompile(`(?m)drover\.url=.*`).FindString(string(text)), "-"))
	if err != nil {
		t.Fatalf("%v in the script, %s:\n%s", err, resp.Status, text)
	}
	if args.URL.Hostname() != "fd00:28::2" {
		t.Errorf("the node's server is %s", args.URL)
	}
	return args
}

// fetchRoot fetches the image by HTTP and by TFTP.
func fetchRoot(t *testing.T, node netns.Namespace, web *http.Client, args cmdline.Args, want []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "root.sqfs")
	f := &fetch.Fetcher{Client: web, URL: args.URL.String() + args.Root, Digest: args.Digest, Stall: time.Minute}
	if _, err := f.Fetch(t.Context(), path); err != nil || !bytes.Equal([]byte(fixture.ReadFile(t, path)), want) {
		t.Errorf("by HTTP: %v", err)
	}
	f = &fetch.Fetcher{
		Client: web, URL: "http://[fd00:28::2]:9/", TFTP: "[fd00:28::2]:69", Name: strings.TrimPrefix(args.Root, "/"), Digest: args.Digest, Stall: time.Minute,
		Retry: retry.Retrier{Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }, Notice: func(error, time.Duration) {}},
	}
	path += "2"
	node.In(t, func() error { _, err := f.Fetch(t.Context(), path); return err })
	if !bytes.Equal([]byte(fixture.ReadFile(t, path)), want) || f.NoHTTP == nil {
		t.Errorf("by TFTP: another image, or by HTTP")
	}
}

func askConfig(t *testing.T, s *client.Server) {
	t.Helper()
	key, err := pools.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	var c pools.NodeConfig
	if err := s.Ask(t.Context(), "config", key, time.Minute, &c); err != nil || c.Hostname != "m1" || c.Pool != "web" {
		t.Errorf("config: %v: got %q of pool %q", err, c.Hostname, c.Pool)
	}
	s.SignEvents(c.EventKey)
}

// writeImage writes an image with a root.
func writeImage(t *testing.T, dir string, root []byte) {
	t.Helper()
	type file struct {
		Size   int    `json:"size"`
		SHA256 string `json:"sha256"`
	}
	files, id := map[string]file{}, sha256.New()
	fmt.Fprintf(id, "drover image 1\nplatform %q\nkernel %q\n", "linux/amd64", "6.1")
	contents := map[string][]byte{"initrd": []byte("i"), "kernel": []byte("k"), "root.squashfs": root}
	for _, name := range []string{"initrd", "kernel", "root.squashfs"} {
		sum := sha256.Sum256(contents[name])
		files[name] = file{len(contents[name]), hex.EncodeToString(sum[:])}
		fmt.Fprintf(id, "file %q %d %q\n", name, files[name].Size, files[name].SHA256)
	}
	text, err := json.Marshal(map[string]any{"name": "debian-12", "created": time.Unix(1, 0), "kernelVersion": "6.1", "platform": "linux/amd64", "files": files})
	if err != nil {
		t.Fatal(err)
	}
	contents["manifest.json"] = text
	generation := hex.EncodeToString(id.Sum(nil))
	for name, content := range contents {
		path := filepath.Join(dir, generation, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(generation, filepath.Join(dir, "current")); err != nil {
		t.Fatal(err)
	}
}
