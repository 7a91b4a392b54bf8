package httpboot_test

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
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/httpboot"
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
	macForeign = mac("52:54:00:99:99:99") // none of ours
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
	keys   map[pools.MAC]string
	steps  []step
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
		b.nonces, b.keys = map[pools.MAC]string{}, map[pools.MAC]string{}
	}
	b.nonces[p.MAC] = nonce
	delete(b.keys, p.MAC)
	b.steps = append(b.steps, step{p.MAC, nonce, boots.Event{Step: boots.StepScript}})
	return nonce, nil
}

func (b *fakeBoots) Adopt(*resolve.Plan, string) {}

func (b *fakeBoots) Claim(m pools.MAC, nonce string, key []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.fail != nil:
		return b.fail
	case b.nonces[m] != nonce:
		return fmt.Errorf("%s: %w", m, boots.ErrNonce)
	case b.keys[m] != "" && b.keys[m] != string(key):
		return fmt.Errorf("%s: %w", m, boots.ErrClaimed)
	}
	b.keys[m] = string(key)
	return nil
}

func (b *fakeBoots) Former(pools.MAC, string) string { return "pool before" }

func (b *fakeBoots) Unclaimed(m pools.MAC, nonce string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.fail != nil:
		return b.fail
	case b.nonces[m] != nonce:
		return boots.ErrNonce
	case b.keys[m] != "":
		return boots.ErrClaimed
	}
	return nil
}

// eventKey is the key of a boot's events.
func eventKey(nonce string) []byte { return []byte("event key of " + nonce) }

func (b *fakeBoots) EventKey(_ pools.MAC, nonce string) []byte { return eventKey(nonce) }

func (b *fakeBoots) Report(m pools.MAC, r boots.Report) error {
	switch {
	case r.Signed == nil:
	case !r.Signed(eventKey(r.Nonce)):
		return boots.ErrUnsigned
	case r.Uptime == 0:
		return boots.ErrRepeated
	}
	return b.Step(m, r.Nonce, r.Event)
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

func (b *fakeBoots) claimedBy(m pools.MAC) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.keys[m]
}

type joinerFunc func(ctx context.Context, p *resolve.Plan, addr netip.Addr, bootID string) (pools.JoinConfig, error)

func (f joinerFunc) Join(ctx context.Context, p *resolve.Plan, addr netip.Addr, bootID string) (pools.JoinConfig, error) {
	return f(ctx, p, addr, bootID)
}

func (joinerFunc) Living(context.Context, *resolve.Plan) (time.Duration, error) { return 0, nil }

// running is a joiner whose cluster has the node of a machine that boots.
type running struct {
	joinerFunc
	asked []string
	again time.Duration
	err   error
}

func (j *running) Living(_ context.Context, p *resolve.Plan) (time.Duration, error) {
	j.asked = append(j.asked, p.Node)
	return j.again, j.err
}

// busy is an error after which a node tries again.
type busy string

func (b busy) Error() string           { return string(b) }
func (busy) RetryAfter() time.Duration { return 7 * time.Second }

const tokenSecret = "abcdef.0123456789abcdef"

func joinWithToken(context.Context, *resolve.Plan, netip.Addr, string) (pools.JoinConfig, error) {
	return pools.JoinConfig{Kubeadm: "token: " + tokenSecret}, nil
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

// world is a server with everything around it faked.
type world struct {
	*httpboot.Server
	script.Options
	farm   farm
	boots  *fakeBoots
	images images
	log    *fixture.Log
	h      http.Handler
}

// newWorld makes a world; edit may be nil, and changes the server before it
// runs.
func newWorld(t testing.TB, edit func(*world)) *world {
	t.Helper()
	w := &world{farm: plans(), boots: &fakeBoots{}, images: debianImage(t), log: &fixture.Log{}}
	at := map[netip.Addr]pools.MAC{
		netip.MustParseAddr("127.0.0.1"): macBIOS,
		netip.MustParseAddr("127.0.0.2"): macUEFI,
		netip.MustParseAddr("127.0.0.3"): macUnknown,
	}
	log := slog.New(slog.NewTextHandler(w.log, nil))
	w.Options = script.Options{
		Machines: directory{w.farm, at}, Boots: w.boots, Images: w.images, URL: "http://10.28.0.2:80/", SecureURL: "https://10.28.0.2:8444", Log: log,
	}
	w.Server = &httpboot.Server{Boots: w.boots, Joiner: joinerFunc(joinWithToken), Addr: "127.0.0.1:0", Log: log}
	if edit != nil {
		edit(w)
	}
	var err error
	if w.Pin, err = w.TLS.Pin(); err != nil {
		t.Fatal(err)
	}
	if w.Scripts, err = script.New(w.Options); err != nil {
		t.Fatal(err)
	}
	w.h = w.Handler()
	return w
}

// do sends a request from an address, without a network.
func (w *world) do(from, method, path string, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "/", strings.NewReader(body))
	u := r.URL
	var err error
	if u.Path, err = pathOf(path); err != nil {
		panic(err)
	}
	u.RawPath = path
	r.RemoteAddr = net.JoinHostPort(from, "1024")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	w.h.ServeHTTP(rec, r)
	return rec
}

// serve runs the server on a real socket and returns its base URL. wrap may
// change the listener.
func (w *world) serve(t testing.TB, wrap func(net.Listener) net.Listener) string {
	t.Helper()
	l, err := w.Listen()
	if err != nil {
		t.Fatal(err)
	}
	base := "http://" + l.Addr().String()
	if wrap != nil {
		l = wrap(l)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return base
}

func get(t testing.TB, url string, header ...string) (*http.Response, []byte) {
	t.Helper()
	return exchange(t, http.MethodGet, url, header...)
}

// exchange sends a request from 127.0.0.1, on a connection of its own.
func exchange(t testing.TB, method, url string, header ...string) (*http.Response, []byte) {
	t.Helper()
	r, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, body
}

// Of6 returns the machine of a MAC.
func (d directory) Of6(mac pools.MAC) machines.Machine { return d.Of(mac) }
