package tftp

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxName bounds a file name. The longest that firmware asks for is GRUB's
// path of a module.
const maxName = 255

// clean turns the name in a request into a path below the served directory.
// It errs on names that no firmware sends.
func clean(name string) (string, error) {
	// ROMs that read option 67 beyond its end append the END option.
	for strings.HasSuffix(name, "\xff") {
		name = name[:len(name)-1]
	}
	switch {
	case len(name) > maxName:
		return "", fmt.Errorf("file name of %d bytes", len(name))
	case !utf8.ValidString(name), strings.ContainsFunc(name, unicode.IsControl):
		return "", fmt.Errorf("file name %q is not text", name)
	}
	// Microsoft's loaders ask for \Boot\BCD, GRUB for /grub/grub.cfg, shim
	// for //grubx64.efi.
	name = strings.ReplaceAll(name, `\`, "/")
	if slices.Contains(strings.Split(name, "/"), "..") {
		return "", fmt.Errorf("file name %q climbs out of the directory", name)
	}
	if name = path.Clean("/" + name)[1:]; name == "" {
		return "", errors.New("no file name")
	}
	return name, nil
}
