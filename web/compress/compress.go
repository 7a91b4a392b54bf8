// Package compress sends answers with gzip to clients that take it: texts of more than a
// kilobyte, with status 200. The caller leaves out the answers that have secrets, since the size
// of a compressed one tells about its content (BREACH).
//
// It does not touch streams of events, answers with an ETag, and those whose Cache-Control has
// no-transform.
package compress

import (
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// least is the smallest answer that is compressed, in bytes: a packet has room for it.
const least = 1 << 10

// writers are idle ones: each takes a megabyte.
var writers = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level exists
	return w
}}

// Handler returns a handler that compresses the answers of another one.
func Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out, end := Writer(w, r)
		defer end()
		next.ServeHTTP(out, r)
	})
}

// Writer returns a writer for the answer to a request, and what to call when the answer is
// complete.
func Writer(w http.ResponseWriter, r *http.Request) (out http.ResponseWriter, end func()) {
	w.Header().Add("Vary", "Accept-Encoding")
	if r.Method != http.MethodGet || !takes(r.Header.Values("Accept-Encoding")) {
		return w, func() {}
	}
	c := &writer{ResponseWriter: w}
	return c, c.end
}

// takes reports whether the client takes gzip (RFC 9110, section 12.5.3).
func takes(header []string) bool {
	other := false
	for word := range strings.SplitSeq(strings.Join(header, ","), ",") {
		coding, weight, _ := strings.Cut(strings.ReplaceAll(word, " ", ""), ";q=")
		q, err := strconv.ParseFloat(weight, 64)
		wanted := weight == "" || err == nil && q > 0
		switch {
		case strings.EqualFold(coding, "gzip"):
			return wanted
		case coding == "*":
			other = wanted
		}
	}
	return other
}

// writer is the answer to a request. The header waits for the first bytes of the body.
type writer struct {
	http.ResponseWriter
	status int // of a header that waits; 0: none does
	sent   bool
	zip    *gzip.Writer // nil: the body is sent as it is
}

// Unwrap is for [http.ResponseController].
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements [http.ResponseWriter].
func (w *writer) WriteHeader(status int) {
	switch {
	case w.status != 0: // the first one counts
		return
	case !w.sent && status == http.StatusOK && w.compressible():
		w.status = status
		return
	}
	w.sent = w.sent || status >= 200
	w.ResponseWriter.WriteHeader(status)
}

// compressible reports whether the header is of a text that may be compressed.
func (w *writer) compressible() bool {
	h := w.Header()
	kind, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	switch kind {
	case "application/json", "text/html", "text/css", "text/javascript":
		return h.Get("Content-Encoding") == "" && h.Get("ETag") == "" && !strings.Contains(h.Get("Cache-Control"), "no-transform")
	}
	return false
}

// Write implements [http.ResponseWriter].
func (w *writer) Write(b []byte) (int, error) {
	if !w.sent && w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if !w.sent {
		w.sent = true
		if len(b) >= least {
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Del("Content-Length")
			w.zip = writers.Get().(*gzip.Writer)
			w.zip.Reset(w.ResponseWriter)
		}
		w.ResponseWriter.WriteHeader(w.status)
	}
	if w.zip != nil {
		return w.zip.Write(b)
	}
	return w.ResponseWriter.Write(b)
}

// FlushError is for [http.ResponseController]. A header that waits for the body is sent, and the
// body is then not compressed: how long it is, is not known yet.
func (w *writer) FlushError() error {
	if !w.sent {
		w.sent = true
		if w.status != 0 {
			w.ResponseWriter.WriteHeader(w.status)
		}
	}
	if w.zip != nil {
		if err := w.zip.Flush(); err != nil {
			return err
		}
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// end completes the answer.
func (w *writer) end() {
	switch {
	case w.zip != nil:
		_ = w.zip.Close() // the client is gone
		writers.Put(w.zip)
	case !w.sent && w.status != 0:
		w.ResponseWriter.WriteHeader(w.status)
	}
}
