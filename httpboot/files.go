package httpboot

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"time"

	"drover/httpboot/script"
	"drover/pools/boots"
)

// plainText is the media type of boot scripts.
const plainText = "text/plain; charset=utf-8"

func (h *handler) refuseHead(rec *recorder, _ *http.Request) error {
	rec.Header().Set("Allow", http.MethodGet)
	return refuse(http.StatusMethodNotAllowed, "a boot script can only be fetched with GET: each is made for one boot")
}

// serveFinder serves the script that finds the script of a machine by its MAC.
func (h *handler) serveFinder(rec *recorder, r *http.Request) error {
	text, err := h.server.Scripts.Finder(addrOf(r.RemoteAddr))
	if err != nil {
		return broken(err, "the script cannot be written")
	}
	return writeText(rec, plainText, text)
}

// serveScript begins a boot and serves its script. If the server has a problem, the
// script shows it.
func (h *handler) serveScript(rec *recorder, r *http.Request) error {
	plan, err := h.machine(rec, r)
	if err != nil {
		return err
	}
	text, err := h.server.Scripts.IPXE(plan)
	if text == nil {
		return broken(err, "the script cannot be written")
	}
	if err != nil {
		rec.Err, rec.problem = err, true
	}
	return writeText(rec, plainText, text)
}

// serveImage serves a file of an image. It supports Range and If-Range, so that downloads
// can be resumed. The answer may be cached forever.
func (h *handler) serveImage(rec *recorder, r *http.Request) error {
	h.identify(rec, r)
	img, err := h.server.Scripts.Image(r.PathValue("name"), r.PathValue("generation"))
	if err != nil {
		return err
	}
	file := r.PathValue("file")
	whole := false // the client has got the end of the file
	if file == script.SquashfsFile && r.Method == http.MethodGet {
		turn, err := h.admit(rec, r)
		if err != nil {
			return err
		}
		defer func() { h.queue.Leave(turn, whole) }()
	}
	f, info, err := img.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	header := rec.Header()
	header.Set("Content-Type", "application/octet-stream")
	header.Set("ETag", `"`+info.SHA256+`"`)
	header.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.sendFile(rec, r, file, f, time.Time{})
	at, err := f.Seek(0, io.SeekCurrent) // less than Size after a range in the middle
	whole = err == nil && rec.Err == nil && at == info.Size
	return nil
}

// serveFile serves the files that boot programs name as by TFTP, below dir: loaders, and
// the scripts and modules of a GRUB that was fetched by HTTP. HEAD of a script begins a
// boot as GET does; a GET soon after it gets the same script.
func (h *handler) serveFile(dir string) func(*recorder, *http.Request) error {
	return func(rec *recorder, r *http.Request) error {
		name := dir + r.PathValue("file")
		f, err := h.server.Scripts.HTTP().Open(addrOf(r.RemoteAddr), name)
		if err != nil {
			return err
		}
		defer f.Close()
		if f.Plan != nil {
			rec.identify(f.Plan)
		}
		header := rec.Header()
		header.Set("Content-Type", loaderType(name))
		disk := f.Disk()
		if disk == nil { // made for this client
			header.Set("Cache-Control", "no-store")
			serveContent(rec, r, time.Time{}, io.NewSectionReader(f, 0, f.Size()))
			return nil
		}
		fi, err := disk.Stat()
		if err != nil {
			return broken(err, "loader %q cannot be read", name)
		}
		header.Set("Cache-Control", "no-cache")
		h.sendFile(rec, r, name, disk, fi.ModTime())
		return nil
	}
}

// loaderType returns the media type of a loader (UEFI specification, "Network
// Boot Program image types").
func loaderType(file string) string {
	known := map[string]string{".efi": "application/efi", ".iso": "application/vnd.efi-iso", ".img": "application/vnd.efi-img"}
	return cmp.Or(known[path.Ext(file)], "application/octet-stream")
}

// identify finds the machine of a client by its address, for log and timeline: the URLs
// of files do not identify it.
func (h *handler) identify(rec *recorder, r *http.Request) {
	if m, ok := h.server.Scripts.At(addrOf(r.RemoteAddr)); ok && m.Plan != nil {
		rec.identify(m.Plan)
	}
}

// sendFile answers with the file of a name. After a whole file it records the step of a known machine's
// boot.
//
// A single transfer is corked, concurrent ones are not. Without TCP_CORK one connection
// has 0.65 of nginx' rate: the kernel sends small segments, and the client wakes up for
// each. With TCP_CORK it has 1.1. Without it, 8 connections have 1.06 and 64 have 1.04;
// with it they have 1.02 and 0.85. The figures are medians of paired rounds of make
// bench-boot. A larger SO_SNDBUF does not help in general: if net.core.wmem_max limits
// it to less than TCP's own maximum, it costs a quarter of the rate.
func (h *handler) sendFile(rec *recorder, r *http.Request, name string, f *os.File, modified time.Time) {
	start := time.Now()
	if h.sending.Add(1) == 1 {
		cork(r, 1)
		defer cork(r, 0)
	}
	defer h.sending.Add(-1)
	serveContent(rec, r, modified, f) // f has to be an *os.File for sendfile
	step := script.StepOf(name)
	if step == "" || rec.MAC.IsZero() || r.Method != http.MethodGet || rec.Status != http.StatusOK || rec.Err != nil {
		return
	}
	detail := fmt.Sprintf("%s, %.1f MB in %.2f s", name, float64(rec.Bytes)/1e6, time.Since(start).Seconds())
	h.observe(rec.MAC, boots.Event{Step: step, Detail: detail})
}
