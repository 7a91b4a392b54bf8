package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"runtime/pprof"
	"strconv"
	"strings"
	"testing"
	"time"

	pin "github.com/pin/tftp/v3"

	"drover/dhcp"
	"drover/e2e/fixture"
	"drover/httpboot/script"
	inittftp "drover/node/tftp"
	"drover/pools"
	"drover/pools/boots"
	"drover/pools/resolve"
)

// oneImage is a [script.Images] with the image debian-12 only.
type oneImage struct{ is script.Image }

// rootText is the root image: of several windows of TFTP.
var rootText = strings.Repeat("the root of a node\n", 3<<20/19)

func newOneImage(t *testing.T) oneImage {
	t.Helper()
	i := oneImage{is: script.Image{Name: "debian-12", Generation: strings.Repeat("12", 32), Dir: t.TempDir()}}
	for name, f := range map[string]*script.FileInfo{"kernel": &i.is.Kernel, "initrd": &i.is.Initrd, "root": &i.is.Squashfs} {
		content := []byte("the " + name)
		if name == "root" {
			content = []byte(rootText)
		}
		sum := sha256.Sum256(content)
		*f = script.FileInfo{Name: name, Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:])}
		if err := os.WriteFile(filepath.Join(i.is.Dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return i
}

func (i oneImage) Image(ref string) (script.Image, error) {
	if pools.ImageName(ref) != i.is.Name {
		return script.Image{}, fmt.Errorf("image %q: %w", ref, fs.ErrNotExist)
	}
	return i.is, nil
}

// bootSite is drover serve on loopback, with node m1 at 127.0.0.1.
type bootSite struct {
	*Server
	t     *testing.T
	log   *fixture.Log
	image oneImage
	tftp  string
}

func newBootSite(t *testing.T, edit string) *bootSite {
	t.Helper()
	site := &bootSite{t: t, log: &fixture.Log{}}
	dir := t.TempDir()
	port := func() string {
		l, err := net.Listen("tcp", "127.0.0.2:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		return l.Addr().String()
	}
	site.tftp = port()
	config := fmt.Sprintf(`server: {dhcp: "off", address: 127.0.0.2, http: "%s", tftp: "%s", api: "127.0.0.1:%s"%s}
subnets: [{cidr: 127.0.0.0/8}]
pools: [{name: web, image: debian-12, nodes: [{name: m1, macs: ["52:54:00:77:01:01"], ip: 127.0.0.1}]}]
`, port(), site.tftp, strings.Split(port(), ":")[1], edit)
	file := filepath.Join(dir, "drover.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	site.Server, err = New(Options{Config: file, State: filepath.Join(dir, "state"), Log: slog.New(slog.NewTextHandler(site.log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	site.image = newOneImage(t)
	site.scripts.Images = site.image
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- site.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		site.Close()
	})
	site.awaitLog("msg=serving") // the sockets are bound
	return site
}

// get fetches a file by TFTP, and tries again after a timeout: on a machine that is
// busy with other tests packets are lost, also on loopback, and a write to disk can
// take a minute.
func (s *bootSite) get(name string) (string, error) {
	s.t.Helper()
	for began := time.Now(); ; {
		text, err := s.try(name)
		late, ok := errors.AsType[net.Error](err)
		if !ok || !late.Timeout() {
			return text, err
		}
		if time.Since(began) > 3*time.Minute {
			_ = pprof.Lookup("goroutine").WriteTo(s.t.Output(), 1) // shows the goroutine that blocks
			return text, err
		}
	}
}

func (s *bootSite) try(name string) (string, error) {
	c, err := pin.NewClient(s.tftp)
	if err != nil {
		return "", err
	}
	c.SetTimeout(2 * time.Second)
	c.RequestTSize(true)
	from, err := c.Receive(name, "octet")
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	_, err = from.WriteTo(&b)
	return b.String(), err
}

func (s *bootSite) mustGet(name string) string {
	s.t.Helper()
	text, err := s.get(name)
	if err != nil {
		s.t.Fatalf("%s: %v\n%s", name, err, s.log)
	}
	return text
}

// awaitLog waits until the server has logged a text.
func (s *bootSite) awaitLog(want string) {
	s.t.Helper()
	fixture.Eventually(s.t, "a log with "+want, func() bool { return strings.Contains(s.log.String(), want) })
}

func first(t *testing.T, pattern, text string) string {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no %s in\n%s", pattern, text)
	}
	return m[1]
}

// GRUB, U-Boot and PXELINUX fetch their files by TFTP; each file names the next one.
func TestBootByTFTP(t *testing.T) {
	for _, single := range []string{"", ", tftpSinglePort: true"} {
		s := newBootSite(t, single)
		next := first(t, `source "\(tftp,127\.0\.0\.2\)(/grub/\$1-[^"]*)"`, s.mustGet("/grub/grub.cfg"))
		script := s.mustGet(strings.Replace(next, "$1", "node", 1))
		if got := s.mustGet(first(t, `linux '\(tftp,127\.0\.0\.2\)([^']*)'`, script)); got != "the kernel" {
			t.Errorf("got %q", got)
		}
		if got := s.mustGet(first(t, `initrd '\(tftp,127\.0\.0\.2\)([^']*)'`, script)); got != "the initrd" {
			t.Errorf("got %q", got)
		}
		if text := s.mustGet("boot.scr.uimg"); !strings.Contains(text, "pxe boot") {
			t.Errorf("got %q", text)
		}
		linux := s.mustGet("pxelinux.cfg/01-52-54-00-77-01-01")
		if got := s.mustGet(first(t, `drover\.root=(\S+)`, linux)); got != rootText {
			t.Errorf("got %d bytes, want %d", len(got), len(rootText))
		}
		if got := s.mustGet(first(t, `INITRD (\S+)`, linux)); got != "the initrd" {
			t.Errorf("got %q", got)
		}
		fixture.Eventually(s.t, "the steps script, kernel and initrd", func() bool {
			seen := map[boots.Step]bool{}
			for _, b := range s.Store.Boots.List() {
				for _, step := range b.Steps {
					seen[step.Step] = true
				}
			}
			return seen[boots.StepScript] && seen[boots.StepKernel] && seen[boots.StepInitrd]
		})
		s.awaitLog("msg=tftp part=tftp file=grub/grub.cfg client=127.0.0.1 bytes=")
		s.awaitLog("mac=52:54:00:77:01:01")
	}
}

// TestRootImageByTFTP fetches a root image as drover-init does where HTTP is blocked, from
// drover serve.
func TestRootImageByTFTP(t *testing.T) {
	s := newBootSite(t, "")
	name := "images/debian-12/" + s.image.is.Generation + "/root.squashfs"
	r, err := inittftp.Open(t.Context(), s.tftp, name, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, err := io.ReadAll(r); err != nil || r.Size != int64(len(rootText)) || string(got) != rootText {
		t.Fatalf("got %d bytes, %v, size %d; want %d", len(got), err, r.Size, len(rootText))
	}
	s.awaitLog("file=" + name + " client=127.0.0.1 bytes=" + strconv.Itoa(len(rootText)))
	if _, err := inittftp.Open(t.Context(), s.tftp, strings.Replace(name, "debian-12", "other", 1), time.Minute); err == nil ||
		!strings.Contains(err.Error(), "server answers error 2") {
		t.Errorf("another image: got error %v, want error 2", err)
	}
}

// TFTP and HTTP answer declared networks only, and know the machines (findings H6 and H7,
// and the low one about all networks).
func TestNetworksOfListeners(t *testing.T) {
	s := newBootSite(t, ", clients: [192.0.2.0/24]")
	for client, want := range map[string]bool{"127.0.0.1": true, "127.3.4.5": true, "192.0.2.7": true, "198.51.100.7": false, "10.0.0.1": false} {
		addr := netip.MustParseAddr(client)
		if tftp, http := s.Server.tftp.Serves(addr), s.http.Clients.Serves(addr); tftp != want || http != want {
			t.Errorf("%s: TFTP serves it: %t, HTTP: %t; want %t", client, tftp, http, want)
		}
	}
	for client, want := range map[string]bool{"127.0.0.1": true, "192.0.2.7": false} {
		if got := s.Server.tftp.Known(netip.MustParseAddr(client)); got != want {
			t.Errorf("%s is known to TFTP: %t, want %t", client, got, want)
		}
	}
}

// A refused file is explained to the client and in the log.
func TestProblemsByTFTP(t *testing.T) {
	s := newBootSite(t, "")
	for name, want := range map[string]string{
		"undionly.kpxe":                   `no loader "undionly.kpxe": see drover loaders on the server`,
		"../etc/passwd":                   "bad file name",
		"images/debian-13/x/kernel":       "no such image",
		"pxelinux.cfg/01-525400770102":    "MAC address 52:54:00:77:01:02 is not known here",
		"grub/node-52:54:00:77:01:02.cfg": "MAC address 52:54:00:77:01:02 is not known here",
		"images/debian-13/" + strings.Repeat("12", 32) + "/kernel": `image "debian-13" is not for this machine, which has "debian-12"`,
		"images/debian-12/" + strings.Repeat("13", 32) + "/squash": "an image has kernel and initrd here",
	} {
		_, err := s.get(name)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: client got %v, want %q", name, err, want)
		}
	}
	for _, want := range []string{
		`file=undionly.kpxe client=127.0.0.1`, `error="no loader \"undionly.kpxe\": see drover loaders on the server (node m1, 52:54:00:77:01:01)"`,
		`error="image \"debian-13\" is not for this machine, which has \"debian-12\" (node m1, 52:54:00:77:01:01)"`,
	} {
		s.awaitLog(want)
	}
}

// A one-time boot is used by one boot, however often that fetches its script.
func TestNextBootEndToEnd(t *testing.T) {
	s := newBootSite(t, "")
	mac := pools.MAC{0x52, 0x54, 0, 0x77, 1, 1}
	script := func() string { return s.mustGet("grub/node-52:54:00:77:01:01.cfg") }
	discover := func() {
		p := s.Machines.Resolve(resolve.Query{MAC: mac, Firmware: pools.UEFIx64})
		s.exchange(dhcp.Exchange{Type: "DISCOVER", Netboot: true, Reply: "OFFER", MAC: mac, Plan: p, Time: time.Now()})
	}
	if err := s.Store.NextBoots.Set(pools.NextRescue, "m1"); err != nil {
		t.Fatal(err)
	}
	discover()
	rescue := script()
	if !strings.Contains(rescue, "'drover.rescue=1'") || script() != rescue {
		t.Errorf("the boot fetched its script twice, and did not get the rescue script twice:\n%s", rescue)
	}
	if left := s.Store.NextBoots.Pending("m1"); left != "" {
		t.Errorf("next boot %q is still there", left)
	}
	discover()
	if plain := script(); strings.Contains(plain, "drover.rescue") {
		t.Errorf("the second boot got the rescue too:\n%s", plain)
	}
	if err := s.Store.NextBoots.Set("image=debian-13", "m1"); err != nil {
		t.Fatal(err)
	}
	if text := script(); !strings.Contains(text, `the server has no image "debian-13"`) {
		t.Errorf("got\n%s", text)
	}
	s.awaitLog(`msg="a machine cannot boot yet" part=http mac=52:54:00:77:01:01 node=m1 pool=web problem="the server has no image \"debian-13\""`)
}
