package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drover/e2e/fixture"
)

// source returns a directory with all files that an image is made of.
func source(t *testing.T) string {
	return fixture.Tree(t, map[string]string{
		"drover-amd64": "first program", "drover-arm64": "second program", "roots.pem": "authorities", "notices": "licences",
		"images/debian-12/aaa/root.squashfs": "a root", "loaders/undionly.kpxe": "a loader",
	})
}

// blobs returns the contents of all files of an archive, one after the other.
func blobs(t *testing.T, archive string) string {
	t.Helper()
	var all strings.Builder
	for r := tar.NewReader(strings.NewReader(fixture.ReadFile(t, archive))); ; {
		_, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(content)
	}
}

// TestFlags: each flag's file is in the archive, below directories that are made, and anyone
// may read the archive. A second run writes the same.
func TestFlags(t *testing.T) {
	src := source(t)
	out := filepath.Join(src, "dist", "new", "image.tar")
	args := []string{
		"-o", out, "-name", "localhost/drover:1.2.3", "-images", src + "/images", "-loaders", src + "/loaders", "-authorities", src + "/roots.pem",
		"-notices", src + "/notices", "amd64=" + src + "/drover-amd64", "arm64=" + src + "/drover-arm64",
	}
	if err := run(args); err != nil {
		t.Fatal(err)
	}
	fixture.WantMode(t, out, 0o644)
	fixture.WantText(t, "the archive", blobs(t, out), "localhost/drover:1.2.3", "first program", "second program", "authorities", "licences",
		"a root", "a loader", `"architecture":"amd64"`, `"architecture":"arm64"`)
	first := fixture.ReadFile(t, out)
	if err := run(args); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal([]byte(first), []byte(fixture.ReadFile(t, out))) {
		t.Error("a second run wrote another archive")
	}
}

// TestRefused: after a mistake the archive of before is still there, and nothing beside it.
func TestRefused(t *testing.T) {
	src := source(t)
	roots, program := "-authorities="+src+"/roots.pem", "amd64="+src+"/drover-amd64"
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"no program":          {[]string{roots}, "program"},
		"no architecture":     {[]string{roots, src + "/drover-amd64"}, "want ARCH=PROGRAM"},
		"architecture twice":  {[]string{roots, program, "amd64=" + src + "/drover-arm64"}, "once for each architecture"},
		"program missing":     {[]string{roots, "amd64=" + src + "/none"}, "none"},
		"authorities missing": {[]string{"-authorities=" + src + "/none", program}, "none"},
		"notices missing":     {[]string{roots, "-notices=" + src + "/none", program}, "none"},
		"images missing":      {[]string{roots, "-images=" + src + "/none", program}, "none"},
		"name without a tag":  {[]string{roots, "-name=drover", program}, "drover"},
		"unknown flag":        {[]string{roots, "-push", program}, "-push"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := fixture.Tree(t, map[string]string{"image.tar": "of before"})
			out := filepath.Join(dir, "image.tar")
			err := run(append([]string{"-o", out}, tt.args...))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want one with %q", err, tt.want)
			}
			if got := fixture.ReadFile(t, out); got != "of before" {
				t.Errorf("the archive is now %.40q", got)
			}
			files, err := os.ReadDir(dir)
			if err != nil || len(files) != 1 {
				t.Errorf("got files %v, %v, want the archive alone", files, err)
			}
		})
	}
}
