package buildcache

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestDropImports(t *testing.T) {
	const source = `package main

import (
	"os"
	"x/pkg/backend"
	_ "x/pkg/backend/cloud"
	_ "x/pkg/backend/vxlan"
	_ "x/pkg/backend/vxlanish"
)
`
	const want = `package main

import (
	"os"
	"x/pkg/backend"
	_ "x/pkg/backend/vxlan"
)
`
	got, kept := dropImports(source, "x/pkg/backend/", []string{"hostgw", "vxlan"})
	if got != want || kept != 1 {
		t.Errorf("got %d kept in\n%s\nwant 1 in\n%s", kept, got, want)
	}
}

// packages writes a tar as mmdebstrap does, with files that a container needs and files
// that it does not.
func packages(t *testing.T, without string) string {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range []tar.Header{
		{Typeflag: tar.TypeDir, Name: "./bin/", Mode: 0o755, Uid: 7},
		{Typeflag: tar.TypeReg, Name: "./bin/busybox", Mode: 0o755, Size: 3, Uname: "root"},
		{Typeflag: tar.TypeChar, Name: "./dev/zero"},
		{Typeflag: tar.TypeReg, Name: "./etc/protocols", Mode: 0o644, Size: 3},
		{Typeflag: tar.TypeReg, Name: "./etc/shadow", Mode: 0o600, Size: 3},
		{Typeflag: tar.TypeReg, Name: "./usr/lib/x86_64-linux-gnu/gconv/BIG5.so", Size: 3},
		{Typeflag: tar.TypeReg, Name: "./usr/lib/x86_64-linux-gnu/libnftables.so.1", Mode: 0o644, Size: 3},
		{Typeflag: tar.TypeLink, Name: "./usr/lib/x86_64-linux-gnu/libnft", Linkname: "./usr/lib/x86_64-linux-gnu/libnftables.so.1"},
		{Typeflag: tar.TypeReg, Name: "./usr/sbin/xtables-nft-multi", Mode: 0o755, Size: 3},
		{Typeflag: tar.TypeReg, Name: "./usr/share/doc/iptables/copyright", Size: 3},
	} {
		if h.Name == without {
			continue
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, "elf"[:h.Size]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), toolsTar)
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestToolsLayer(t *testing.T) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := toolsLayer(w, packages(t, "")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for r := tar.NewReader(&b); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.TrimSuffix(h.Name+" "+h.Linkname, " "))
		if h.Uid != 0 || h.Uname != "" || h.ModTime.Unix() > 0 {
			t.Errorf("%s: got owner %d %q, time %v, want none", h.Name, h.Uid, h.Uname, h.ModTime)
		}
	}
	want := []string{
		"bin", "bin/busybox", "etc/protocols",
		"usr/lib/x86_64-linux-gnu/libnftables.so.1",
		"usr/lib/x86_64-linux-gnu/libnft usr/lib/x86_64-linux-gnu/libnftables.so.1",
		"usr/sbin/xtables-nft-multi",
		"bin/cp busybox", "bin/sh busybox",
		"usr/sbin/ip6tables xtables-nft-multi", "usr/sbin/ip6tables-restore xtables-nft-multi", "usr/sbin/ip6tables-save xtables-nft-multi",
		"usr/sbin/iptables xtables-nft-multi", "usr/sbin/iptables-restore xtables-nft-multi", "usr/sbin/iptables-save xtables-nft-multi",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if err := toolsLayer(tar.NewWriter(io.Discard), packages(t, "./usr/sbin/xtables-nft-multi")); err == nil || !strings.Contains(err.Error(), "xtables-nft-multi is not") {
		t.Errorf("a package has changed: got %v, want an error", err)
	}
}

func TestNetworkImages(t *testing.T) {
	programs := t.TempDir()
	for _, name := range []string{"kube-proxy", "b"} {
		if err := os.WriteFile(filepath.Join(programs, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	if err := networkImages(dir, packages(t, ""), map[string][]installed{
		"kube-proxy:v1": {inBin(programs, "kube-proxy")},
		"b:lab":         {inBin(programs, "b")},
	}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	var index struct {
		Manifests []struct{ Annotations map[string]string }
	}
	if err := json.Unmarshal(text, &index); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range index.Manifests {
		names = append(names, m.Annotations["org.opencontainers.image.ref.name"])
	}
	if want := []string{"b:lab", "kube-proxy:v1"}; !slices.Equal(names, want) {
		t.Errorf("got images %q, want %q", names, want)
	}
	// One layer of tools; a layer of its own and two documents for each image.
	blobs, err := os.ReadDir(filepath.Join(dir, "blobs", "sha256"))
	if err != nil || len(blobs) != 7 {
		t.Errorf("got %d blobs, %v, want 7", len(blobs), err)
	}
}

// TestOverlay builds a program whose source stands in for a file of its module.
func TestOverlay(t *testing.T) {
	dir := t.TempDir()
	b := goBuild{overlay: func(_ context.Context, dir, temp string) (map[string]string, error) {
		file := filepath.Join(temp, "x.go")
		return map[string]string{filepath.Join(dir, "main.go"): file}, os.WriteFile(file, []byte("package main\nfunc main() {}\n"), 0o600)
	}}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	flags, clean, err := b.overlaid(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "program")
	cmd := command(t.Context(), "go", append(append([]string{"build"}, flags...), "-o", program, ".")...)
	cmd.Dir, cmd.Env = dir, goEnv()
	if err := run(cmd, io.Discard); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		t.Error(err)
	}
	clean()
	if _, err := os.Stat(flags[1]); err == nil {
		t.Errorf("%s is left", flags[1])
	}
}
