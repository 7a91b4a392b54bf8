package oci

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// digestForm matches a digest. It keeps a client's path inside of the layout's folder.
var digestForm = regexp.MustCompile(`^sha256:([0-9a-f]{64})$`)

// Registry serves the images of a layout, below /v2/, as OCI's distribution
// specification says of a registry that one may pull from.
func Registry(dir string) http.Handler {
	r := registry{dir: dir}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v2/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, "{}")
	})
	mux.HandleFunc("GET /v2/{name}/manifests/{ref}", r.manifest)
	mux.HandleFunc("GET /v2/{name}/blobs/{digest}", r.blob)
	return mux
}

type registry struct{ dir string }

// manifest serves the manifest that a tag names, or a digest.
func (r registry) manifest(w http.ResponseWriter, req *http.Request) {
	name, ref := req.PathValue("name"), req.PathValue("ref")
	text, err := os.ReadFile(filepath.Join(r.dir, "index.json"))
	var all index
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	for _, m := range all.Manifests {
		image, tag, _ := strings.Cut(m.Annotations[refName], ":")
		if image == name && (ref == tag || ref == m.Digest) {
			w.Header().Set("Content-Type", m.MediaType)
			r.serve(w, req, m.Digest)
			return
		}
	}
	refuse(w, "MANIFEST_UNKNOWN", fmt.Sprintf("no image %q", name+":"+ref))
}

// blob serves a config or a layer.
func (r registry) blob(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Content-Type", "application/octet-stream")
	r.serve(w, req, req.PathValue("digest"))
}

func (r registry) serve(w http.ResponseWriter, req *http.Request, digest string) {
	m := digestForm.FindStringSubmatch(digest)
	if m == nil {
		refuse(w, "DIGEST_INVALID", fmt.Sprintf("%q is not the digest of a blob", digest))
		return
	}
	path := filepath.Join(r.dir, "blobs", "sha256", m[1])
	if _, err := os.Stat(path); err != nil {
		refuse(w, "BLOB_UNKNOWN", fmt.Sprintf("no blob %q", digest))
		return
	}
	w.Header().Set("Docker-Content-Digest", digest)
	http.ServeFile(w, req, path)
}

// refuse answers with an error in the form that engines expect. Without it they report a
// broken registry, not a missing image.
func refuse(w http.ResponseWriter, code, message string) {
	type object map[string]any
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusNotFound)
	_ = json.NewEncoder(w).Encode(object{"errors": []object{{"code": code, "message": message}}}) // a client that has gone
}
