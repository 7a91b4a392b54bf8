package bootfile

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/imagebuild"
)

// A loader is missing if machines need it that boot the images of the host.
func TestMissingLoaders(t *testing.T) {
	for _, tt := range []struct {
		platforms []string
		want      []string // the loaders
	}{
		{nil, []string{"undionly.kpxe", "snponly.efi"}},
		{[]string{"linux/amd64"}, []string{"undionly.kpxe", "snponly.efi"}},
		{[]string{"linux/arm64"}, []string{"snponly-arm64.efi"}},
		{[]string{"linux/amd64", "linux/arm64"}, []string{"undionly.kpxe", "snponly.efi", "snponly-arm64.efi"}},
	} {
		files := map[string]string{}
		for _, platform := range tt.platforms {
			m := imagebuild.Manifest{Name: strings.ReplaceAll(platform, "/", "-"), KernelVersion: "6.1", Platform: platform, Files: map[string]imagebuild.File{}}
			for _, name := range []string{"kernel", "initrd", "root.squashfs"} {
				m.Files[name] = imagebuild.File{Size: 1, SHA256: strings.Repeat("0", 64)}
			}
			text, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			for name := range m.Files {
				files[m.Name+"/"+m.ID()+"/"+name] = "x"
			}
			files[m.Name+"/"+m.ID()+"/manifest.json"] = string(text)
		}
		var got []string
		for _, line := range missingLoaders(nil, fixture.Tree(t, files)) {
			got = append(got, strings.Fields(line)[1])
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("images for %v: %v are missing, want %v", tt.platforms, got, tt.want)
		}
	}
}
