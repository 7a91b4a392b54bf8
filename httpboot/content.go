package httpboot

import (
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// serveContent answers with a file: with its length, to GET and HEAD alike, and with the
// part that a GET asks for. GRUB and other boot programs need the length before the
// content, and GRUB reads fonts and modules with seeks. The content type has to be set.
//
// net/http finds the parts. sanitizeRange has removed what it reads in other ways than RFC
// 9110.
func serveContent(rec *recorder, r *http.Request, modified time.Time, content io.ReadSeeker) {
	if r.Header.Get("Range") != "" {
		if size, err := content.Seek(0, io.SeekEnd); err == nil && size == 0 {
			r.Header.Del("Range") // net/http would answer with a part of nothing
		}
	}
	// The name would only serve to guess the type.
	http.ServeContent(rec, r, "", modified, content)
}

// writeText answers with a text that is made for one request.
func writeText(rec *recorder, contentType string, text []byte) error {
	header := rec.Header()
	header.Set("Content-Type", contentType)
	header.Set("Cache-Control", "no-store")
	// Above 2 KiB net/http would send chunks.
	header.Set("Content-Length", strconv.Itoa(len(text)))
	_, err := rec.Write(text)
	return err
}

// unsatisfiable is a range behind the end of each file.
const unsatisfiable = "9223372036854775807-"

// sanitizeRange rewrites the header Range where net/http does not read it as RFC 9110
// does:
//
//   - it is for GET alone (section 14.2)
//   - the unit may be in any case, and a header with an unknown unit is ignored (14.1, 14.2)
//   - a suffix of no bytes cannot be satisfied (14.1.2)
//   - a number may be larger than any file (14.1.2)
func sanitizeRange(r *http.Request) {
	value := r.Header.Get("Range")
	if value == "" {
		return
	}
	unit, set, ok := strings.Cut(value, "=")
	if !ok || r.Method != http.MethodGet || !strings.EqualFold(unit, "bytes") {
		r.Header.Del("Range")
		return
	}
	var ranges []string
	impossible := false
	for part := range strings.SplitSeq(set, ",") {
		first, last, _ := strings.Cut(part, "-")
		first, last = clampNumber(first), clampNumber(last)
		if n, err := strconv.ParseInt(last, 10, 64); first == "" && err == nil && n == 0 {
			impossible = true
			continue
		}
		if strings.Contains(part, "-") {
			part = first + "-" + last
		}
		ranges = append(ranges, part)
	}
	if impossible && len(ranges) == 0 {
		ranges = []string{unsatisfiable}
	}
	r.Header.Set("Range", "bytes="+strings.Join(ranges, ","))
}

// clampNumber returns a number as net/http reads it: at most math.MaxInt64. Any other
// text stays as it is.
func clampNumber(s string) string {
	s = strings.TrimSpace(s)
	if _, err := strconv.ParseInt(s, 10, 64); errors.Is(err, strconv.ErrRange) && s[0] != '-' {
		return strconv.FormatInt(math.MaxInt64, 10)
	}
	return s
}
