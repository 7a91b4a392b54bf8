package media

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
)

// Archs are the architectures of boot media.
var Archs = []string{"x64", "arm64"}

// New returns a medium with the loaders of archs, and the names of its architectures. A
// nil archs is every architecture that the directory has loaders for. GRUB on the medium
// boots from server.
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
	// With archs all must be found, otherwise at least one.
	if len(found) == 0 || len(missing) > 0 && archs != nil {
		return m, nil, fmt.Errorf("%s: %w\nget them with: apt-get install shim-signed grub-efi-amd64-signed && drover loaders install",
			loaders.Name(), errors.Join(missing...))
	}
	m.Files["grub/grub.cfg"] = []byte(strings.ReplaceAll(grubTemplate, "{{.Server}}", server.String()))
	return m, found, nil
}

// readLoaders returns the files of an architecture by their paths on the medium. Shim has
// the name that firmware loads from a medium, the others have the names that shim loads.
// MokManager serves people at the console and may be missing.
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

// grubTemplate is the config of GRUB on a medium.
//
//go:embed media.grub.tmpl
var grubTemplate string
