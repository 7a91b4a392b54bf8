package parts_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"drover/e2e/parts"
)

func TestMissing(t *testing.T) {
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	for _, n := range parts.Needs() {
		if err := os.WriteFile(filepath.Join(bin, n.Name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	here := filepath.Join(bin, parts.Needs()[0].Name)
	tests := []struct {
		name string
		more []parts.Need
		want []string
	}{
		{"nothing", nil, nil},
		{"a file that is there", []parts.Need{{here, "x"}}, nil},
		{"a file", []parts.Need{{bin + "/no-such", "ovmf"}}, []string{"ovmf"}},
		{"a program", []parts.Need{{"no-such-program", "qemu-system-x86"}}, []string{"qemu-system-x86"}},
		{"sorted, each once",
			[]parts.Need{{bin + "/b", "ovmf"}, {"no-such-program", "ipxe"}, {bin + "/a", "ovmf"}},
			[]string{"ipxe", "ovmf"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := parts.Missing(tt.more...); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
