package server

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"drover/imagebuild"
	"drover/pools"
	"drover/pools/config"
	"drover/pools/state"
)

// What is missing on this host is told: images, loaders of the firmware, and
// loaders that rules name. What is elsewhere, or for nobody, is not missing.
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
	store, err := state.Open(filepath.Join(dir, "state"), state.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	live, err := config.NewLive(file, store.Nodes)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range (&readiness{live: live, images: imagebuild.Open(filepath.Join(dir, "images")), loaders: dir}).local() {
		got = append(got, p.Part)
	}
	if want := []string{"image debian-12", "loader for uefi-x64", "loader of tag a"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
