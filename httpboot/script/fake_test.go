package script_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"drover/e2e/fixture"
	"drover/httpboot/script"
	"drover/pools"
	"drover/pools/boots"
	"drover/pools/machines"
	"drover/pools/resolve"
)

// The machines of the tests.
var (
	macBIOS    = mac("52:54:00:00:00:01") // fixed address 127.0.0.1
	macUEFI    = mac("52:54:00:00:00:03") // second card of its node, fixed address 127.0.0.2
	macUnknown = mac("52:54:00:77:01:01") // catch-all, leases 127.0.0.3
	macNoLease = mac("52:54:00:77:01:02") // catch-all without a lease
	macForeign = mac("52:54:00:99:99:99") // not in the farm
)

func mac(s string) pools.MAC {
	m, err := pools.ParseMAC(s)
	if err != nil {
		panic(err)
	}
	return m
}

func plans() farm {
	return farm{
		macBIOS: {
			Node: "node-1", MAC: macBIOS, MACs: []pools.MAC{macBIOS}, Pool: "compute", Cluster: "tenant-a",
			Image: "debian-12", Address: netip.MustParseAddr("127.0.0.1"),
			Subnet: pools.Subnet{Domain: "example.org"},
			Settings: resolve.Settings{
				KernelArgs: []string{"console=tty1", "console=ttyS0,9600n8", `dyndbg="file drivers/usb/* +p"`},
				Timezone:   "Europe/Prague",
				Sysctls:    map[string]string{"net.ipv4.ip_forward": "1"},
				Files:      map[string]pools.File{"/etc/secret": {Content: fileSecret, Mode: "0600"}},
				Labels:     map[string]string{"rack": "r1"},
				Scripts: map[string]pools.Script{
					"z-first": {Stage: pools.PreInit, Run: "#!/bin/sh\necho {{quote .Node}} {{.Labels.rack}}\n"},
					"b":       {Stage: pools.Online, Run: "#!/bin/sh\necho b\n"},
					"a":       {Stage: pools.Online, Run: "#!/bin/sh\necho a\n"},
				},
			},
		},
		macUEFI: {
			Node: "node-2", MAC: macUEFI, MACs: []pools.MAC{mac("52:54:00:00:00:02"), macUEFI}, Pool: "storage",
			Image: "debian-12", Address: netip.MustParseAddr("127.0.0.2"),
		},
		macUnknown: {
			Node: "node-525400770101", MAC: macUnknown, MACs: []pools.MAC{macUnknown}, Pool: "catchall", CatchAll: true,
			Cluster: "lobby", Image: "debian-12",
		},
		macNoLease: {
			Node: "node-525400770102", MAC: macNoLease, MACs: []pools.MAC{macNoLease}, Pool: "catchall", CatchAll: true,
			Cluster: "lobby", Image: "debian-12",
		},
	}
}

const fileSecret = "the-content-of-a-file-that-nobody-may-read"

type farm map[pools.MAC]*resolve.Plan

func (f farm) Resolve(q resolve.Query) *resolve.Plan { return f[q.MAC] }

// directory has the machines of a farm; at has their addresses.
type directory struct {
	farm farm
	at   map[netip.Addr]pools.MAC
}

func (d directory) At(addr netip.Addr) (machines.Machine, bool) {
	mac, ok := d.at[addr]
	if !ok {
		return machines.Machine{}, false
	}
	return d.Of(mac), true
}

func (d directory) Of(mac pools.MAC) machines.Machine {
	found := machines.Machine{MAC: mac, Plan: d.farm.Resolve(resolve.Query{MAC: mac})}
	if found.Plan != nil && found.Plan.Address.IsValid() {
		found.Address = found.Plan.Address
	} else if mac == macUnknown {
		found.Address = netip.MustParseAddr("127.0.0.3")
	}
	return found
}

// fakeBoots keeps boots in memory, with the semantics that the interface asks for.
type fakeBoots struct {
	mu     sync.Mutex
	n      int
	fail   error // of every call
	nonces map[pools.MAC]string
	steps  []step

	generations []string // of the boots that were issued
}

type step struct {
	MAC   pools.MAC
	Nonce string
	boots.Event
}

func (b *fakeBoots) IssueUnproved(p *resolve.Plan) (string, error) { return b.Issue(p) }

func (b *fakeBoots) Issue(p *resolve.Plan) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fail != nil {
		return "", b.fail
	}
	b.n++
	nonce := fmt.Sprintf("%032x", b.n)
	if b.nonces == nil {
		b.nonces = map[pools.MAC]string{}
	}
	b.nonces[p.MAC] = nonce
	b.steps = append(b.steps, step{p.MAC, nonce, boots.Event{Step: boots.StepScript}})
	b.generations = append(b.generations, p.Generation)
	return nonce, nil
}

func (b *fakeBoots) Step(m pools.MAC, nonce string, e boots.Event) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.fail != nil:
		return b.fail
	case nonce != "" && b.nonces[m] != nonce:
		return boots.ErrNonce
	}
	b.steps = append(b.steps, step{m, nonce, e})
	return nil
}

// seen returns the steps recorded of a machine, as "step" or "step!error".
func (b *fakeBoots) seen(m pools.MAC) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	got := []string{}
	for _, s := range b.steps {
		if s.MAC != m {
			continue
		}
		text := string(s.Step)
		if s.Error != "" {
			text += "!" + s.Error
		}
		got = append(got, text)
	}
	return got
}

type images map[string]script.Image

func (i images) Image(ref string) (script.Image, error) {
	img, ok := i[ref]
	switch {
	case ref == "damaged":
		return img, errors.New("manifest: unexpected end of JSON input")
	case !ok:
		return img, fmt.Errorf("image %q: %w", ref, fs.ErrNotExist)
	}
	return img, nil
}

const generation = "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0"

// contents of the image's files
var contents = map[string][]byte{
	"kernel":        bytes.Repeat([]byte("kernel "), 1000),
	"initrd":        bytes.Repeat([]byte("initrd "), 2000),
	"root.squashfs": bytes.Repeat([]byte("squash "), 700_000), // more than four chunks of 1 MiB
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func debianImage(t testing.TB) images {
	t.Helper()
	dir := t.TempDir()
	img := script.Image{Name: "debian-12", Generation: generation, Dir: dir}
	for name, f := range map[string]*script.FileInfo{"kernel": &img.Kernel, "initrd": &img.Initrd, "root.squashfs": &img.Squashfs} {
		*f = script.FileInfo{Name: "file-" + name, Size: int64(len(contents[name])), SHA256: digest(contents[name])}
		writeFile(t, filepath.Join(dir, f.Name), contents[name])
	}
	writeFile(t, filepath.Join(dir, "manifest.json"), []byte("{}"))
	return images{"debian-12": img, "debian-12@sha256:" + generation: img}
}

func writeFile(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// world is a renderer with everything around it faked.
type world struct {
	script.Options
	farm   farm
	at     map[netip.Addr]pools.MAC
	boots  *fakeBoots
	images images
	log    *fixture.Log
	r      *script.Renderer
}

// newWorld makes a world; edit may be nil, and changes the options before the
// renderer is made.
func newWorld(t testing.TB, edit func(*world)) *world {
	t.Helper()
	w := &world{farm: plans(), boots: &fakeBoots{}, images: debianImage(t), log: &fixture.Log{}}
	w.at = map[netip.Addr]pools.MAC{
		netip.MustParseAddr("127.0.0.1"): macBIOS,
		netip.MustParseAddr("127.0.0.2"): macUEFI,
		netip.MustParseAddr("127.0.0.3"): macUnknown,
	}
	w.Options = script.Options{
		Machines: directory{w.farm, w.at}, Boots: w.boots, Images: w.images, URL: "http://10.28.0.2:80/",
		Log: slog.New(slog.NewTextHandler(w.log, nil)),
	}
	if edit != nil {
		edit(w)
	}
	w.render(t)
	return w
}

// render makes the renderer of the world's options.
func (w *world) render(t testing.TB) {
	t.Helper()
	var err error
	if w.r, err = script.New(w.Options); err != nil {
		t.Fatal(err)
	}
}

// ipxe returns the script of a machine for iPXE.
func (w *world) ipxe(t testing.TB, m pools.MAC) string {
	t.Helper()
	text, _ := w.r.IPXE(w.farm[m]) // a script also with an error
	if text == nil {
		t.Fatal("there is no script")
	}
	return string(text)
}

// Of6 returns the machine of a MAC.
func (d directory) Of6(mac pools.MAC) machines.Machine { return d.Of(mac) }
