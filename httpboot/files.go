package httpboot

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path"
	"strings"
	"time"
	"unicode"

	"drover/pools"
	"drover/pools/boots"
)

// Image is one generation of an image. What is behind a name and a generation
// never changes.
type Image struct {
	Name       string
	Generation string // its digest: a SHA-256 in hex
	Dir        string // the directory that holds the files
	Kernel     FileInfo
	Initrd     FileInfo
	Squashfs   FileInfo
}

// FileInfo is a file of an [Image].
type FileInfo struct {
	Name   string // in Image.Dir
	Size   int64  // bytes
	SHA256 string // hex
}

// urlPath returns the path of the image's files, with a slash at its end.
func (i Image) urlPath() (string, error) {
	if !isImageName(i.Name) || !isHex(i.Generation, 64, 64) {
		return "", fmt.Errorf("image %q, generation %q: not a name and a digest", i.Name, i.Generation)
	}
	return pools.ImagePath + i.Name + "/" + i.Generation + "/", nil
}

// file returns the file with this name in URLs, and the step of a boot that
// fetching it is; the node itself reports the squashfs.
func (i Image) file(name string) (f FileInfo, step boots.Step, ok bool) {
	switch name {
	case kernelFile:
		return i.Kernel, boots.StepKernel, true
	case initrdFile:
		return i.Initrd, boots.StepInitrd, true
	case squashfsFile:
		return i.Squashfs, "", true
	}
	return FileInfo{}, "", false
}

// serveImage serves a file of an image: with Range and If-Range, for downloads
// that go on after an interruption, and to caches for ever.
func (h *handler) serveImage(rec *recorder, r *http.Request) error {
	h.recognize(rec, r)
	name, generation, file := r.PathValue("name"), r.PathValue("generation"), r.PathValue("file")
	if !isImageName(name) || !isHex(generation, 64, 64) {
		return refuse(http.StatusNotFound, "no such image")
	}
	img, err := h.Images.Image(name + "@sha256:" + generation)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return refuse(http.StatusNotFound, "no image %q of generation %q", name, generation)
	case err != nil:
		return broken(err, "image %q cannot be read", name)
	}
	info, step, ok := img.file(file)
	if !ok {
		return refuse(http.StatusNotFound, "an image has %s, %s and %s, no %q", kernelFile, initrdFile, squashfsFile, file)
	}
	if file == squashfsFile && r.Method == http.MethodGet {
		leave, err := h.admit(rec, r)
		if err != nil {
			return err
		}
		defer leave()
	}
	f, fi, err := openIn(img.Dir, info.Name)
	if err != nil {
		return broken(err, "%s of image %q cannot be read", file, name)
	}
	defer f.Close()
	if fi.Size() != info.Size {
		return broken(fmt.Errorf("%s has %d bytes, its manifest says %d", f.Name(), fi.Size(), info.Size),
			"%s of image %q is damaged", file, name)
	}
	header := rec.Header()
	header.Set("Content-Type", "application/octet-stream")
	header.Set("ETag", `"`+info.SHA256+`"`)
	header.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.serveFile(rec, r, f, time.Time{}, step)
	return nil
}

// serveLoader serves a loader to UEFI HTTP Boot.
func (h *handler) serveLoader(rec *recorder, r *http.Request) error {
	h.recognize(rec, r)
	file := r.PathValue("file")
	// shim asks for files that are not there in passing; a 404 has to be cheap.
	if !isFileName(file) {
		return refuse(http.StatusNotFound, "no such loader")
	}
	f, fi, err := openIn(h.Loaders, file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return refuse(http.StatusNotFound, "no loader %q", file)
	case err != nil:
		return broken(err, "loader %q cannot be read", file)
	}
	defer f.Close()
	rec.Header().Set("Content-Type", loaderType(file))
	rec.Header().Set("Cache-Control", "no-cache")
	h.serveFile(rec, r, f, fi.ModTime(), boots.StepLoader)
	return nil
}

// isImageName tells whether s can be the name of an image, as the config has
// it. Such a name needs no escaping anywhere.
func isImageName(s string) bool {
	return len(s) <= 128 && isFileName(s) && !strings.ContainsFunc(s, unicode.IsUpper)
}

// isFileName tells whether s can be the name of a loader: letters, digits, dots,
// dashes and underscores, the first no dot and no dash.
func isFileName(s string) bool {
	for i := range len(s) {
		c := s[i]
		alnum := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !alnum && (i == 0 || c != '.' && c != '-' && c != '_') {
			return false
		}
	}
	return s != "" && len(s) <= 255
}

// loaderType returns the media type that UEFI knows a loader by (UEFI
// specification, "Network Boot Program image types").
func loaderType(file string) string {
	switch path.Ext(file) {
	case ".efi":
		return "application/efi"
	case ".iso":
		return "application/vnd.efi-iso"
	case ".img":
		return "application/vnd.efi-img"
	}
	return "application/octet-stream"
}

// openIn opens a regular file in dir, and nowhere else. The error is
// [fs.ErrNotExist] also for what is no regular file: whether there is a
// directory or a pipe of that name is nobody's business.
func openIn(dir, name string) (*os.File, fs.FileInfo, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	fi, err := root.Stat(name) // before Open, which would wait for a pipe's other end
	if err != nil {
		return nil, nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%q is no regular file: %w", name, fs.ErrNotExist)
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, nil, err
	}
	if fi, err = f.Stat(); err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, fi, nil
}

// serveFile answers with f, and records the step once all of it has been sent
// to a machine that is known.
func (h *handler) serveFile(rec *recorder, r *http.Request, f *os.File, modified time.Time, step boots.Step) {
	start := time.Now()
	// The name is for guessing a type, and that is set. f has to be an
	// *os.File for sendfile.
	http.ServeContent(rec, r, "", modified, f)
	if step == "" || rec.mac.IsZero() || r.Method != http.MethodGet || rec.status != http.StatusOK || rec.err != nil {
		return
	}
	h.observe(rec.mac, boots.Event{Step: step, Detail: transfer(r.PathValue("file"), rec.bytes, time.Since(start))})
}

// transfer words how a file went over: "kernel, 11.3 MB in 0.21 s".
func transfer(file string, bytes int64, took time.Duration) string {
	return fmt.Sprintf("%s, %.1f MB in %.2f s", strings.TrimSpace(file), float64(bytes)/1e6, took.Seconds())
}

// recognize finds out by its address which machine asks, for log and timeline.
// URLs of files are the same for all.
func (h *handler) recognize(rec *recorder, r *http.Request) {
	mac, ok := h.Addresses.MACAt(addrOf(r.RemoteAddr))
	if !ok {
		return
	}
	if p := h.Farm.Resolve(pools.Query{MAC: mac}); p != nil {
		rec.who(p)
	}
}
