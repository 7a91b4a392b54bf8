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

// Registry serves the images of layouts, below /v2/, as OCI's distribution specification
// says of a registry that one may pull from. It is a mirror too: the parameter ns, with
// which containerd names the registry that it stands for, is the first part of an image's
// name.
func Registry(dirs ...string) http.Handler {
	r := registry{dirs: dirs}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v2/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, "{}")
	})
	mux.HandleFunc("GET /v2/{path...}", r.file)
	return mux
}

type registry struct{ dirs []string }

// fileForm is the path of a manifest or a blob. The names of images have slashes.
var fileForm = regexp.MustCompile(`^(.+?)/(manifests|blobs)/(.+)$`)

// file serves a manifest or a blob.
func (r registry) file(w http.ResponseWriter, req *http.Request) {
	m := fileForm.FindStringSubmatch(req.PathValue("path"))
	switch {
	case m == nil:
		refuse(w, "UNSUPPORTED", "want NAME/manifests/REFERENCE or NAME/blobs/DIGEST")
	case m[2] == "manifests":
		r.manifest(w, req, m[1], m[3])
	default:
		w.Header().Set("Content-Type", "application/octet-stream")
		r.serve(w, req, m[3])
	}
}

// manifest serves the manifest that a tag names, or a digest.
func (r registry) manifest(w http.ResponseWriter, req *http.Request, name, ref string) {
	for _, dir := range r.dirs {
		text, err := os.ReadFile(filepath.Join(dir, "index.json"))
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
			if (image == name || image == req.FormValue("ns")+"/"+name) && (ref == tag || ref == m.Digest) {
				w.Header().Set("Content-Type", m.MediaType)
				r.serve(w, req, m.Digest)
				return
			}
		}
	}
	refuse(w, "MANIFEST_UNKNOWN", fmt.Sprintf("no image %q", name+":"+ref))
}

func (r registry) serve(w http.ResponseWriter, req *http.Request, digest string) {
	m := digestForm.FindStringSubmatch(digest)
	if m == nil {
		refuse(w, "DIGEST_INVALID", fmt.Sprintf("%q is not the digest of a blob", digest))
		return
	}
	for _, dir := range r.dirs {
		path := filepath.Join(dir, "blobs", "sha256", m[1])
		if _, err := os.Stat(path); err == nil {
			w.Header().Set("Docker-Content-Digest", digest)
			http.ServeFile(w, req, path)
			return
		}
	}
	refuse(w, "BLOB_UNKNOWN", fmt.Sprintf("no blob %q", digest))
}

// refuse answers with an error in the form that engines expect. Without it they report a
// broken registry, not a missing image.
func refuse(w http.ResponseWriter, code, message string) {
	type object map[string]any
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusNotFound)
	_ = json.NewEncoder(w).Encode(object{"errors": []object{{"code": code, "message": message}}}) // a client that has gone
}
