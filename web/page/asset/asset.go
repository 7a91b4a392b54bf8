// Package asset has the files of the page that are the same for everyone: its style, its script,
// and htmx, which asks for the page again and changes what is different in it (htmx/README.md
// says where it is from). They are in the program.
package asset

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"

	"drover/web/answer"
)

//go:embed style.css page.js htmx
var files embed.FS

// types are the files that are served, with their types. Their path is the name alone.
var types = map[string]string{
	"style.css":          "text/css; charset=utf-8",
	"page.js":            "text/javascript; charset=utf-8",
	"htmx/htmx.min.js":   "text/javascript; charset=utf-8",
	"htmx/hx-sse.min.js": "text/javascript; charset=utf-8",
}

// Handlers returns the handlers of the files, by their paths. They need no session. A browser may
// keep the files, and asks each time whether they are the same.
func Handlers() map[string]answer.Handler {
	all := map[string]answer.Handler{}
	for name, kind := range types {
		data, err := files.ReadFile(name)
		if err != nil {
			panic(err) // a file that is embedded
		}
		sum := sha256.Sum256(data)
		tag := `"` + hex.EncodeToString(sum[:8]) + `"`
		all["/"+path.Base(name)] = func(w http.ResponseWriter, r *http.Request) error {
			w.Header().Set("Cache-Control", "no-cache")
			w.Header().Set("ETag", tag)
			if r.Header.Get("If-None-Match") == tag {
				w.WriteHeader(http.StatusNotModified)
				return nil
			}
			w.Header().Set("Content-Type", kind)
			_, _ = w.Write(data) // the client is gone
			return nil
		}
	}
	return all
}
