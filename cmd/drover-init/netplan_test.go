package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drover/e2e/fixture"
)

// TestCheckNetplan: a generator that fails is an error with its reason, and so is a root
// that has files for netplan and no netplan.
func TestCheckNetplan(t *testing.T) {
	for _, tt := range []struct {
		name, file, generator, path, err string
	}{
		{"no files", "", "exit 1", "/usr/lib/netplan/generate", ""},
		{"good", "network: {}", "echo fine", "/usr/lib/netplan/generate", ""},
		{"good, newer", "network: {}", "echo fine", "/usr/libexec/netplan/generate", ""},
		{"fails", "x", "echo \"00-config.yaml:5:7: Error in network definition: unknown key 'foo'\" >&2; echo '      foo: 1'; echo '      ^'; exit 1", "/usr/lib/netplan/generate",
			"netplan: exit status 1: 00-config.yaml:5:7: Error in network definition: unknown key 'foo'; foo: 1"},
		{"none", "x", "", "", "netplan: there is /etc/netplan/00-config.yaml, and the image has no netplan"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := map[string]string{}
			if tt.file != "" {
				files["/etc/netplan/00-config.yaml"] = tt.file
			}
			if tt.path != "" {
				files[tt.path] = "#!/bin/sh\n[ \"$1\" = --root-dir ] || exit 9\n" + tt.generator + "\n"
			}
			root := fixture.Tree(t, files)
			if tt.path != "" {
				if err := os.Chmod(filepath.Join(root, tt.path), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			err := checkNetplan(t.Context(), root, func(string, ...any) {})
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("got %v, want %q", err, tt.err)
			}
		})
	}
}
