package page

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"

	"drover/web/answer"
)

// assets are the files of the page that are the same for everyone: its style, its script, and htmx,
// which asks for the page again and changes what is different in it (asset/htmx/README.md says where
// it is from).
//
//go:embed asset
var assets embed.FS

// servedAssets are the files that browsers ask for: their types, and the parts that they are made of. htmx
// begins as soon as its script has run, so its extension and the page's own script come with it.
var servedAssets = map[string]struct {
	kind  string
	parts []string
}{
	"/style.css": {"text/css; charset=utf-8", []string{"style.css"}},
	"/page.js":   {"text/javascript; charset=utf-8", []string{"htmx/htmx.min.js", "htmx/hx-sse.min.js", "page.js"}},
}

// assetHandlers returns the handlers of these files, by their paths. They need no session. A browser may
// keep the files, and asks each time whether they are the same.
func assetHandlers() map[string]answer.Handler {
	all := map[string]answer.Handler{}
	for path, file := range servedAssets {
		var data []byte
		for _, name := range file.parts {
			part, err := assets.ReadFile("asset/" + name)
			if err != nil {
				panic(err) // a file that is embedded
			}
			data = append(append(data, part...), '\n')
		}
		sum := sha256.Sum256(data)
		tag := `"` + hex.EncodeToString(sum[:8]) + `"`
		all[path] = func(w http.ResponseWriter, r *http.Request) error {
			w.Header().Set("Cache-Control", "no-cache")
			w.Header().Set("ETag", tag)
			if r.Header.Get("If-None-Match") == tag {
				w.WriteHeader(http.StatusNotModified)
				return nil
			}
			w.Header().Set("Content-Type", file.kind)
			_, _ = w.Write(data) // the client is gone
			return nil
		}
	}
	return all
}
