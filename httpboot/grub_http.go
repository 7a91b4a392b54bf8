package httpboot

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"strings"
)

// serveGRUB serves the files of a GRUB that was fetched by HTTP and that speaks
// it: what others fetch by TFTP.
func (h *handler) serveGRUB(rec *recorder, r *http.Request) error {
	h.recognize(rec, r)
	device := "(http," + strings.TrimPrefix(h.base, "http://") + ")"
	f, err := (&Names{h.scripter}).open(addrOf(r.RemoteAddr), "grub/"+r.PathValue("file"), device)
	if err != nil {
		return nameRefusal(err)
	}
	defer f.Close()
	rec.Header().Set("Content-Type", "application/octet-stream")
	rec.Header().Set("Cache-Control", "no-store")
	if r.Method == http.MethodHead {
		return nil
	}
	_, err = io.Copy(rec, io.NewSectionReader(f, 0, f.Size()))
	return err
}

// nameRefusal is a refused name in terms of HTTP.
func nameRefusal(err error) error {
	e, ok := errors.AsType[*NameError](err)
	switch {
	case !ok:
		return err
	case errors.Is(err, fs.ErrNotExist):
		return &HTTPError{Code: http.StatusNotFound, Msg: e.Told}
	case errors.Is(err, fs.ErrPermission):
		return &HTTPError{Code: http.StatusForbidden, Msg: e.Told}
	}
	return &HTTPError{Code: http.StatusInternalServerError, Msg: e.Told, Err: e.Err}
}
