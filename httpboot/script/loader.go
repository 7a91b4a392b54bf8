package script

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
)

func (f *Files) loader(name string) (content, error) {
	opened, size, err := f.r.loader(name)
	return diskFile(opened, size, err)
}

// loader opens a file of the loaders directory and returns its size in bytes. The error
// is an [*Error]. If a UEFI program is not in the subdirectory of its name, Loader opens
// the one in the directory itself: shim requests GRUB from its own directory.
func (r *Renderer) loader(name string) (f *os.File, size int64, err error) {
	if !isLoaderPath(name) {
		return nil, 0, notFound("no loader %q", name)
	}
	f, fi, err := openIn(r.Loaders, name)
	if errors.Is(err, syscall.ENOTDIR) { // a part of the name is a file
		err = fs.ErrNotExist
	}
	if base := path.Base(name); errors.Is(err, fs.ErrNotExist) && base != name && path.Ext(base) == ".efi" {
		f, fi, err = openIn(r.Loaders, base)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist) && isOptional(name):
		return nil, 0, optional{notFound("no loader %q", name)}
	case errors.Is(err, fs.ErrNotExist):
		return nil, 0, notFound("no loader %q: see drover loaders on the server", name)
	case err != nil:
		return nil, 0, &Error{Msg: fmt.Sprintf("loader %q cannot be read", name), Err: err}
	}
	return f, fi.Size(), nil
}

// isLoaderPath reports whether a name can be that of a loader: its parts are file names
// that do not begin with a dot.
func isLoaderPath(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if !isFileName(strings.ReplaceAll(part, "+", "-")) {
			return false
		}
	}
	return true
}

// optional is the error for a file that a boot program does not need.
type optional struct{ error }

func (o optional) Unwrap() error { return o.error }

// Optional reports that the error is harmless.
func (o optional) Optional() bool { return true }

// isOptional reports whether boot programs request a name, but do not need the file: shim
// requests revocations and certificates, GRUB the lists of its modules.
func isOptional(name string) bool {
	base := path.Base(name)
	return slices.Contains([]string{"revocations_sku.efi", "revocations_sbat.efi"}, base) ||
		strings.HasPrefix(base, "shim_certificate_") || path.Ext(base) == ".lst"
}
