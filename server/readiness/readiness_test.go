package readiness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"drover/imagebuild"
	"drover/pools"
	"drover/pools/config"
	"drover/web/api"
)

// noNodes is a store without nodes of the API.
type noNodes struct{}

func (noNodes) Nodes() ([]pools.PoolNode, error)             { return nil, nil }
func (noNodes) ChangeNodes([]pools.PoolNode, []string) error { return nil }

// openSite returns the live farm of a config, in a new directory.
func openSite(t *testing.T, text string) *config.Live {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("drover.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	live, err := config.NewLive(config.Source{File: "drover.yaml"}, noNodes{})
	if err != nil {
		t.Fatal(err)
	}
	return live
}

// Missing images, loaders of the firmware and loaders that rules name are problems. A
// loader on another server, and the image of an ignored pool, are not.
func TestMissing(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "drover.yaml")
	if err := os.WriteFile(file, []byte(`server: {interfaces: [eth1], address: 10.28.0.2}
subnets: [{cidr: 10.28.0.0/16}]
tags:
  a: {loaders: [{firmware: bios, loader: there.0}, {firmware: bios, class: x, loader: missing.0}]}
  b: {loaders: [{firmware: bios, loader: elsewhere.0, server: 10.28.0.9}, {firmware: uefi-x64-http, loader: "http://10.28.0.9/x.efi"}]}
pools:
  - {name: web, image: debian-12, tags: [a, b]}
  - {name: nobody, ignore: true}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"there.0", pools.BIOS.Loader()} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	live, err := config.NewLive(config.Source{File: file}, noNodes{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range (&Checks{Live: live, Images: imagebuild.Open(filepath.Join(dir, "images")), Loaders: dir, Proc: fstest.MapFS{}}).local() {
		got = append(got, p.Part)
	}
	if want := []string{"image debian-12", "loader for uefi-x64", "loader of tag a"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A farm of arm64 machines is ready without the loaders of x86-64 ones.
func TestReadyWithoutX86(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "drover.yaml")
	if err := os.WriteFile(file, []byte(`server: {interfaces: [eth1], address: 10.28.0.2}
subnets: [{cidr: 10.28.0.0/16}]
pools: [{name: m400, image: debian-arm64}]
`), 0o600); err != nil {
		t.Fatal(err)
	}
	digest := strings.Repeat("0", 64)
	manifest := imagebuild.Manifest{Name: "debian-arm64", Platform: "linux/arm64", Files: map[string]imagebuild.File{
		imagebuild.KernelFile: {SHA256: digest}, imagebuild.InitrdFile: {SHA256: digest}, imagebuild.SquashfsFile: {SHA256: digest},
	}}
	writeImage(t, filepath.Join(dir, "images"), &manifest)
	live, err := config.NewLive(config.Source{File: file}, noNodes{})
	if err != nil {
		t.Fatal(err)
	}
	r := &Checks{Live: live, Images: imagebuild.Open(filepath.Join(dir, "images")), Loaders: dir, Proc: fstest.MapFS{}}
	for _, p := range r.local() {
		if !p.Warning {
			t.Errorf("not ready: %s: %s", p.Part, p.Problem)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, pools.UEFIarm64.Loader()), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := r.local(); len(got) != 0 {
		t.Errorf("with the loader for arm64: %+v", got)
	}
}

// One tenant's cluster that fails or hangs makes neither /readyz hang nor the server
// unready. A server whose clusters all fail is not ready (findings C2, M1).
func TestClustersOfReadiness(t *testing.T) {
	live := openSite(t, `server: {interfaces: [eth1], address: 10.28.0.2}
subnets: [{cidr: 10.28.0.0/16}]
clusters: [{name: a, kubeconfig: a.conf}, {name: b, kubeconfig: b.conf}]
pools: [{name: web, ignore: true}]
`)
	synctest.Test(t, func(t *testing.T) {
		down := errors.New("dial tcp 10.9.8.7:6443: \x1b[2Jno\nanswer")
		errs, hang := map[string]error{"a": nil, "b": fmt.Errorf("cluster %q: %w", "b", down)}, make(chan struct{})
		close(hang)
		var checks atomic.Int32
		r := &Checks{
			Live: live, Images: imagebuild.Open(t.TempDir()), Loaders: t.TempDir(), Disks: &Disks{}, State: sick{}, Proc: fstest.MapFS{},
			Chassis: func() map[string]string { return map[string]string{"m1": "10.1.0.1:22: no route to host"} },
			Clusters: func(context.Context) map[string]error {
				checks.Add(1)
				<-hang
				return errs
			},
		}
		of := func(part string) (found *api.Problem) {
			for _, p := range r.Problems() {
				if p.Part == part {
					found = &p
				}
			}
			return found
		}
		if p := of("cluster b"); p == nil || !p.Warning || p.Problem != "dial tcp 10.9.8.7:6443: ?[2Jno answer" || p.Brief != "nodes cannot join it" {
			t.Errorf("one of two clusters: got %+v", p)
		}
		if p := of("chassis m1"); p == nil || !p.Warning {
			t.Errorf("a chassis: got %+v", p)
		}
		for range 100 {
			of("cluster b")
		}
		if n := checks.Load(); n != 1 {
			t.Errorf("answers within a second took %d checks, want 1", n)
		}
		time.Sleep(fresh)
		errs = map[string]error{"a": down, "b": down}
		if p := of("cluster a"); p == nil || p.Warning {
			t.Errorf("both clusters: got %+v", p)
		}
		time.Sleep(fresh)
		hang = make(chan struct{})
		checks.Store(0)
		start := time.Now() // of the bubble: it advances only while get waits, so the time is exact
		for range 10 {
			if p := of("cluster b"); p == nil {
				t.Error("the last result is forgotten")
			}
		}
		if took := time.Since(start); took != 10*newerWait || checks.Load() != 1 {
			t.Errorf("ten answers took %s and %d checks, want %s and 1", took, checks.Load(), 10*newerWait)
		}
		close(hang)
		synctest.Wait()
	})
}

// writeImage writes an image whose files are empty.
func writeImage(t *testing.T, images string, m *imagebuild.Manifest) {
	t.Helper()
	dir := filepath.Join(images, m.Name, m.ID())
	b, err := json.Marshal(m)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, imagebuild.ManifestFile), b, 0o600)
	}
	for name := range m.Files {
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), nil, 0o600)
		}
	}
	if err == nil {
		err = os.Symlink(m.ID(), filepath.Join(images, m.Name, "current"))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A rule for shim needs GRUB too, and U-Boot its device tree.
func TestReadinessOfBootFiles(t *testing.T) {
	dir := t.TempDir()
	r := &Checks{Loaders: dir}
	put := func(names ...string) {
		t.Helper()
		for _, name := range names {
			file := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := func(loader, problem string) {
		t.Helper()
		err := r.checkLoader(loader)
		if problem == "" && err != nil || problem != "" && (err == nil || !strings.Contains(err.Error(), problem)) {
			t.Errorf("%s: got %v, want %q", loader, err, problem)
		}
	}
	want("boot.scr.uimg", "")
	want("snponly.efi", "no such file")
	put("sb/shimx64.efi")
	want("sb/shimx64.efi", "sb/shimx64.efi has nothing to load: stat "+filepath.Join(dir, "grubx64.efi"))
	put("grubx64.efi")
	want("sb/shimx64.efi", "")
	put("shimaa64.efi")
	want("shimaa64.efi", "grubaa64.efi: no such file or directory: put it there with drover loaders install")
}

// TestExpiries: credentials that end within two weeks, or have ended, are a warning with the
// command that renews them.
func TestExpiries(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	ends := map[string]time.Time{
		"gone": now, "soon": now.Add(renewBefore), "later": now.Add(renewBefore + time.Second),
	}
	c := &Checks{
		Live:     openSite(t, "server: {interfaces: [eth1], address: 10.28.0.2}\nsubnets: [{cidr: 10.28.0.0/16}]\npools: [{name: web, image: debian-12}]\n"),
		Images:   imagebuild.Open("images"),
		Expiries: func() map[string]time.Time { return ends },
	}
	got := map[string]api.Problem{}
	for _, p := range c.expiryProblems(now) {
		got[p.Part] = p
	}
	for name, want := range map[string]api.Problem{
		"gone": {Problem: "drover's credentials ended at 2026-11-20T12:00:00Z: drover cluster prepare gone --admin FILE --write FILE makes new ones", Brief: "its credentials have ended"},
		"soon": {Problem: "drover's credentials end at 2026-12-04T12:00:00Z: drover cluster prepare soon --admin FILE --write FILE makes new ones", Brief: "its credentials end soon"},
	} {
		p := got["cluster "+name]
		if !strings.HasPrefix(p.Problem, want.Problem) || p.Brief != want.Brief || !p.Warning {
			t.Errorf("%s: got %+v", name, p)
		}
	}
	if len(got) != 2 {
		t.Errorf("got %+v", got)
	}
	// What drover renews is a warning when it cannot, however far the end is.
	c.Renewals = func() map[string]error { return map[string]error{"soon": nil, "later": errors.New("forbidden")} }
	c.lastFacts = latest[Facts]{}
	got = map[string]api.Problem{}
	for _, p := range c.expiryProblems(now) {
		got[p.Part] = p
	}
	if p := got["cluster later"]; len(got) != 2 || p.Brief != "its credentials are not renewed" || !p.Warning || !strings.Contains(p.Problem, "drover cannot renew them: forbidden; drover cluster prepare later ") {
		t.Errorf("renewed: got %+v", got)
	}
	c.Renewals, ends = nil, nil
	c.lastFacts = latest[Facts]{}
	if got := c.expiryProblems(now); len(got) > 0 {
		t.Errorf("without an end: %+v", got)
	}
}
