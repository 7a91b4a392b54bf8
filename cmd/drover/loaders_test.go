package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/imagebuild/loaders"
)

// TestLoadersOfThisHost installs loaders from the packages on this host; other tests
// need them too.
func TestLoadersOfThisHost(t *testing.T) {
	if _, err := os.Stat("/usr/lib/ipxe/undionly.kpxe"); err != nil {
		fixture.Missing(t, "needs the package ipxe")
	}
	dir := filepath.Join(t.TempDir(), "loaders")
	var out, errs strings.Builder
	if code := run(context.Background(), []string{"loaders", "install", "--loaders", dir}, &out, &errs); code != 0 {
		t.Fatalf("exit code %d\n%s", code, errs.String())
	}
	list, err := loaders.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, l := range list {
		found[l.File] = true
		if !strings.HasPrefix(l.Source, "package ") || l.Version == "" || len(l.Firmware) == 0 {
			t.Errorf("got %+v, want its package, version and firmware", l)
		}
	}
	if !found["undionly.kpxe"] || !found["snponly.efi"] {
		t.Errorf("got\n%s\nwant undionly.kpxe and snponly.efi", out.String())
	}
}
