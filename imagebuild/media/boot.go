package media

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"text/template"
)

// Archs are the architectures of boot media.
var Archs = []string{"x64", "arm64"}

// New returns a medium with the loaders of some architectures, or, with none
// given, of those that the directory has loaders for; and their names. Its GRUB
// boots from a server.
func New(loaders *os.Root, archs []string, server netip.Addr) (m Medium, found []string, err error) {
	m = Medium{Files: map[string][]byte{}, Label: "DROVER"}
	var missing []error
	for _, arch := range Archs {
		if archs != nil && !slices.Contains(archs, arch) {
			continue
		}
		files, err := readLoaders(loaders, arch)
		if err != nil {
			missing = append(missing, err)
			continue
		}
		maps.Copy(m.Files, files)
		found = append(found, arch)
	}
	// All of the given ones must be there, otherwise one of them.
	if len(found) == 0 || len(missing) > 0 && archs != nil {
		return m, nil, fmt.Errorf("%s: %w\nget them with: apt-get install shim-signed grub-efi-amd64-signed && drover loaders install",
			loaders.Name(), errors.Join(missing...))
	}
	m.Files["grub/grub.cfg"], err = grubConfig(server)
	return m, found, err
}

// readLoaders reads the files of an architecture by their paths on the medium:
// shim has the name that firmware asks a medium for, the others those that shim
// asks for. MokManager is for people at the console and may be missing.
func readLoaders(loaders *os.Root, arch string) (map[string][]byte, error) {
	suffix := strings.Replace(arch, "arm", "aa", 1)
	files := map[string][]byte{}
	for name, loader := range map[string]string{
		"BOOT" + strings.ToUpper(suffix) + ".EFI": "shim" + suffix + ".efi",
		"grub" + suffix + ".efi":                  "grub" + suffix + ".efi",
		"mm" + suffix + ".efi":                    "mm" + suffix + ".efi",
	} {
		content, err := loaders.ReadFile(loader)
		switch {
		case errors.Is(err, fs.ErrNotExist) && strings.HasPrefix(loader, "mm"):
		case err != nil:
			return nil, fmt.Errorf("no loader for %s: %w", arch, err)
		default:
			files["EFI/BOOT/"+name] = content
		}
	}
	return files, nil
}

//go:embed media.grub.tmpl
var grubTemplate string

// grubConfig is the config of GRUB on a medium.
func grubConfig(server netip.Addr) ([]byte, error) {
	t, err := template.New("media.grub.tmpl").Parse(grubTemplate)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = t.Execute(&b, struct{ Server netip.Addr }{server})
	return b.Bytes(), err
}
