// Package oci opens images in the OCI image layout, as a directory ([OpenDir]) or as
// a tar of one ([OpenArchive]): it follows index.json to the manifest of a
// [Platform] and gives its layers to package layer.
//
// Sizes and digests are verified as blobs are read. The package never talks to a
// registry.
package oci

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"drover/imagebuild/layer"
	"drover/imagebuild/rootfs"
)

// refName is the annotation of index.json that holds a tag (image-spec,
// annotations.md).
const refName = "org.opencontainers.image.ref.name"

// maxJSON bounds indexes, manifests and configs, in bytes. Registries refuse
// manifests above 4 MiB.
const maxJSON = 4 << 20

// maxIndexDepth is how many indexes may lead to a manifest.
const maxIndexDepth = 4

// blobs opens a file of an OCI image layout by its path and tells its size.
type blobs func(name string) (io.ReadCloser, int64, error)

// descriptor is a reference to a blob (image-spec, descriptor.md).
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations"`
	Platform    *struct {
		OS           string `json:"os"`
		Architecture string `json:"architecture"`
		Variant      string `json:"variant"`
	} `json:"platform"`
}

// document is an index or a manifest; Docker's have the same fields.
type document struct {
	Manifests []descriptor `json:"manifests"` // of an index
	Config    descriptor   `json:"config"`    // of a manifest
	Layers    []descriptor `json:"layers"`
}

// imageConfig is what the builder needs of an image's config.
type imageConfig struct {
	Created      *time.Time `json:"created"`
	OS           string     `json:"os"`
	Architecture string     `json:"architecture"`
	Variant      string     `json:"variant"`
	RootFS       struct {
		DiffIDs []string `json:"diff_ids"`
	} `json:"rootfs"`
}

// OpenDir opens an image layout directory.
func OpenDir(arg string, platform Platform) (*layer.Source, error) {
	dir, tag := cutTag(arg)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	open := func(name string) (io.ReadCloser, int64, error) {
		f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO must not hang the build
		if err != nil {
			return nil, 0, err
		}
		st, err := f.Stat()
		if err == nil && !st.Mode().IsRegular() {
			err = fmt.Errorf("%s is not a regular file", name)
		}
		if err != nil {
			f.Close()
			return nil, 0, err
		}
		return f, st.Size(), nil
	}
	return openLayout(open, root.Close, tag, platform)
}

// OpenArchive opens a tar of an image layout, in place.
func OpenArchive(arg string, platform Platform) (*layer.Source, error) {
	name, tag := cutTag(arg)
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	files, err := archiveIndex(f)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("not a tar of an OCI image layout (compressed ones must be unpacked first): %w", err)
	}
	open := func(name string) (io.ReadCloser, int64, error) {
		section, ok := files[name]
		if !ok {
			return nil, 0, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
		}
		return io.NopCloser(io.NewSectionReader(section, 0, section.Size())), section.Size(), nil
	}
	return openLayout(open, f.Close, tag, platform)
}

// archiveIndex finds where each file of a tar begins. The tar reader takes
// whole blocks and never reads ahead, so after a header the file's position is
// that of the contents.
func archiveIndex(f *os.File) (map[string]*io.SectionReader, error) {
	files := map[string]*io.SectionReader{}
	for tr := tar.NewReader(f); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) {
			return nil, err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if len(files) >= layer.MaxEntries {
			return nil, fmt.Errorf("more than %d files", layer.MaxEntries)
		}
		at, err := f.Seek(0, io.SeekCurrent)
		if err != nil {
			return nil, err
		}
		files[path.Clean(h.Name)] = io.NewSectionReader(f, at, h.Size)
	}
}

func openLayout(open blobs, closer func() error, tag string, platform Platform) (*layer.Source, error) {
	s, err := layoutSource(open, tag, platform)
	if err != nil {
		return nil, errors.Join(err, closer())
	}
	s.Close = closer
	return s, nil
}

func layoutSource(open blobs, tag string, platform Platform) (*layer.Source, error) {
	var index document
	if err := open.json("index.json", &index); err != nil {
		return nil, fmt.Errorf("not an OCI image layout: %w", err)
	}
	desc, err := pickTag(index.Manifests, tag)
	if err != nil {
		return nil, err
	}
	manifest, digest, err := open.manifest(desc, platform)
	if err != nil {
		return nil, err
	}
	var config imageConfig
	if err := open.blobJSON(manifest.Config, &config); err != nil {
		return nil, fmt.Errorf("image config: %w", err)
	}
	if !platform.matches(config.OS, config.Architecture, config.Variant) {
		return nil, fmt.Errorf("the image is for %s/%s, not for %s (choose with --platform)", config.OS, config.Architecture, platform)
	}
	if n := len(config.RootFS.DiffIDs); n != len(manifest.Layers) {
		return nil, fmt.Errorf("the manifest has %d layers, the image config %d", len(manifest.Layers), n)
	}
	s := &layer.Source{Digest: digest}
	if config.Created != nil && config.Created.Unix() > 0 {
		s.Created = *config.Created
	}
	for i, d := range manifest.Layers {
		l, err := open.layer(d, i+1, len(manifest.Layers))
		if err != nil {
			return nil, err
		}
		s.Layers = append(s.Layers, l)
	}
	return s, nil
}

// pickTag finds the image in index.json: the one with the tag, or the only one.
func pickTag(list []descriptor, tag string) (descriptor, error) {
	if len(list) == 0 {
		return descriptor{}, errors.New("index.json lists no image")
	}
	if tag == "" && len(list) == 1 {
		return list[0], nil
	}
	var tags []string
	for _, d := range list {
		name := d.Annotations[refName]
		if tag != "" && (name == tag || d.Digest == tag) {
			return d, nil
		}
		if name == "" {
			name = d.Digest
		}
		tags = append(tags, name)
	}
	slices.Sort(tags)
	if tag == "" {
		return descriptor{}, fmt.Errorf("holds several images; add one of these as :TAG: %s", strings.Join(tags, ", "))
	}
	return descriptor{}, fmt.Errorf("holds no image %q, only %s", tag, strings.Join(tags, ", "))
}

// manifest follows desc through indexes to the manifest for a platform.
func (open blobs) manifest(desc descriptor, platform Platform) (*document, string, error) {
	for range maxIndexDepth {
		var doc document
		if err := open.blobJSON(desc, &doc); err != nil {
			return nil, "", fmt.Errorf("image manifest: %w", err)
		}
		if len(doc.Manifests) == 0 {
			if doc.Config.Digest == "" {
				return nil, "", fmt.Errorf("%s is neither an image index nor an image manifest", desc.Digest)
			}
			return &doc, desc.Digest, nil
		}
		var have []string
		i := slices.IndexFunc(doc.Manifests, func(d descriptor) bool {
			if d.Platform == nil {
				return false
			}
			have = append(have, Platform{d.Platform.OS, d.Platform.Architecture, d.Platform.Variant}.String())
			return platform.matches(d.Platform.OS, d.Platform.Architecture, d.Platform.Variant)
		})
		switch {
		case i >= 0:
			desc = doc.Manifests[i]
		case len(have) == 0 && len(doc.Manifests) == 1:
			desc = doc.Manifests[0] // an index in an index; the image config will tell
		default:
			return nil, "", fmt.Errorf("the image has no variant for %s, only for %s", platform, strings.Join(have, ", "))
		}
	}
	return nil, "", fmt.Errorf("more than %d image indexes inside each other", maxIndexDepth)
}

func (open blobs) layer(d descriptor, i, n int) (layer.Layer, error) {
	name := fmt.Sprintf("layer %d of %d", i, n)
	if strings.HasSuffix(d.MediaType, "+encrypted") {
		return layer.Layer{}, fmt.Errorf("%s is encrypted (%s)", name, d.MediaType)
	}
	if _, _, err := parseDigest(d.Digest); err != nil {
		return layer.Layer{}, fmt.Errorf("%s: %w", name, err)
	}
	read := func(ctx context.Context, l *layer.Reader, progress func(int64)) ([]rootfs.Entry, error) {
		blob, err := open.blob(d)
		if err != nil {
			return nil, err
		}
		defer blob.Close()
		l.Whiteouts = true
		list, err := l.Stream(ctx, blob, progress)
		// A damaged blob mostly shows as a bad tar first. The digest is the
		// better explanation, so read on to it.
		if ctx.Err() == nil {
			if _, derr := io.Copy(io.Discard, blob); errors.As(derr, new(*digestError)) {
				err = derr
			}
		}
		return list, err
	}
	return layer.Layer{Name: name, Size: d.Size, Read: read}, nil
}

// digestError is a blob that is not what its descriptor promises.
type digestError struct{ digest, got string }

func (e *digestError) Error() string {
	return fmt.Sprintf("blob %s is damaged: its content has %s", e.digest, e.got)
}

// blob opens a blob. Reading it to its end returns an error instead of io.EOF
// unless size and digest are right.
func (open blobs) blob(d descriptor) (io.ReadCloser, error) {
	name, h, err := parseDigest(d.Digest)
	if err != nil {
		return nil, err
	}
	r, size, err := open(name)
	if err != nil {
		return nil, err
	}
	if size != d.Size {
		r.Close()
		return nil, fmt.Errorf("blob %s has %d bytes instead of %d", d.Digest, size, d.Size)
	}
	return &verifier{ReadCloser: r, h: h, want: d.Digest}, nil
}

// parseDigest returns the path of a blob and the hash to check it with. Its
// strictness keeps paths such as "sha256:../../etc" out.
func parseDigest(digest string) (string, hash.Hash, error) {
	alg, sum, _ := strings.Cut(digest, ":")
	var h hash.Hash
	switch alg {
	case "sha256":
		h = sha256.New()
	case "sha512":
		h = sha512.New()
	default:
		return "", nil, fmt.Errorf("digest %.160q is neither sha256 nor sha512", digest)
	}
	if b, err := hex.DecodeString(sum); err != nil || len(b) != h.Size() || strings.ToLower(sum) != sum {
		return "", nil, fmt.Errorf("digest %.160q is malformed", digest)
	}
	return "blobs/" + alg + "/" + sum, h, nil
}

// verifier is a blob that checks itself.
type verifier struct {
	io.ReadCloser
	h    hash.Hash
	want string
}

func (v *verifier) Read(b []byte) (int, error) {
	n, err := v.ReadCloser.Read(b)
	v.h.Write(b[:n])
	if errors.Is(err, io.EOF) {
		alg, _, _ := strings.Cut(v.want, ":")
		if got := alg + ":" + hex.EncodeToString(v.h.Sum(nil)); got != v.want {
			return n, &digestError{digest: v.want, got: got}
		}
	}
	return n, err
}

func (open blobs) blobJSON(d descriptor, into any) error {
	if d.Size < 0 || d.Size > maxJSON {
		return fmt.Errorf("blob %s: %d bytes is not a sensible size", d.Digest, d.Size)
	}
	r, err := open.blob(d)
	if err != nil {
		return err
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("blob %s: %w", d.Digest, err)
	}
	return nil
}

// json reads a file of the layout that no digest protects.
func (open blobs) json(name string, into any) error {
	r, size, err := open(name)
	if err != nil {
		return err
	}
	defer r.Close()
	if size > maxJSON {
		return fmt.Errorf("%s: %d bytes is not a sensible size", name, size)
	}
	if err := json.NewDecoder(io.LimitReader(r, maxJSON)).Decode(into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// cutTag splits PATH[:TAG]. A path that exists as a whole wins, so that colons
// in names do no harm.
func cutTag(arg string) (path, tag string) {
	if _, err := os.Stat(arg); err == nil {
		return arg, ""
	}
	if i := strings.LastIndexByte(arg, ':'); i > 0 && !strings.Contains(arg[i:], "/") {
		return arg[:i], arg[i+1:]
	}
	return arg, ""
}
