// Package oci opens images in the OCI image layout: a directory with [OpenDir], a tar of
// one with [OpenArchive]. It follows index.json to the manifest of a [Platform] and
// returns the image as a source of package layer.
//
// It verifies sizes and digests while it reads blobs. The package does not know
// registries: buildah, skopeo or docker buildx write an image into a layout.
package oci

import (
	"archive/tar"
	"cmp"
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

// maxLayers bounds the layers of an image: a manifest could name one blob many thousand
// times. Container engines accept some 127.
const maxLayers = 512

// maxIndexDepth is the number of indexes that may lead to a manifest.
const maxIndexDepth = 4

// blobs opens a file of an OCI image layout by its path, and returns its size in bytes.
type blobs func(name string) (io.ReadCloser, int64, error)

// descriptor is a reference to a blob (image-spec, descriptor.md).
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations"`
	Platform    *Platform         `json:"platform"`
}

// document is an index or a manifest; Docker's have the same fields.
type document struct {
	Manifests []descriptor `json:"manifests"` // of an index
	Config    descriptor   `json:"config"`    // of a manifest
	Layers    []descriptor `json:"layers"`
}

// imageConfig has the fields of an image's config that the builder needs.
type imageConfig struct {
	Platform
	Created *time.Time `json:"created"`
	RootFS  struct {
		DiffIDs []string `json:"diff_ids"`
	} `json:"rootfs"`
}

// OpenDir opens DIR[:TAG], an image layout in a directory.
func OpenDir(arg string, platform Platform) (*layer.Source, error) {
	dir, tag := cutTag(arg)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	open := func(name string) (io.ReadCloser, int64, error) {
		info, err := root.Stat(name)
		if err != nil {
			return nil, 0, err
		}
		if !info.Mode().IsRegular() { // opening a FIFO would wait for ever
			return nil, 0, fmt.Errorf("%s is not a regular file", name)
		}
		f, err := root.Open(name)
		return f, info.Size(), err
	}
	return openLayout(open, root.Close, tag, platform)
}

// OpenArchive opens FILE[:TAG], a tar of an image layout, without unpacking it.
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
		return io.NopCloser(io.NewSectionReader(section, 0, section.Size())), section.Size(), nil // read from its start again
	}
	return openLayout(open, f.Close, tag, platform)
}

// maxBlobName bounds the path of a blob; that of a SHA-512 has 141 bytes.
const maxBlobName = 200

// archiveIndex returns the contents of each file of an image layout in a tar. The tar reader reads
// whole blocks and never reads ahead, so after a header the position in f is the start
// of the contents.
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
		name := path.Clean(h.Name)
		if h.Typeflag != tar.TypeReg || name != "index.json" && !strings.HasPrefix(name, "blobs/") || len(name) > maxBlobName {
			continue
		}
		if len(files) >= layer.MaxEntries {
			return nil, fmt.Errorf("more than %d files", layer.MaxEntries)
		}
		at, err := f.Seek(0, io.SeekCurrent)
		if err != nil {
			return nil, err
		}
		files[name] = io.NewSectionReader(f, at, h.Size)
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
	r, _, err := open("index.json")
	if err == nil {
		defer r.Close()
		err = json.NewDecoder(io.LimitReader(r, maxJSON)).Decode(&index)
	}
	if err != nil {
		return nil, fmt.Errorf("not an OCI image layout: index.json: %w", err)
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
	if err := open.json(manifest.Config, &config); err != nil {
		return nil, fmt.Errorf("image config: %w", err)
	}
	if !platform.matches(config.Platform) {
		return nil, fmt.Errorf("the image is for %s/%s, not for %s (choose with --platform)", config.OS, config.Arch, platform)
	}
	if n := len(manifest.Layers); n > maxLayers {
		return nil, fmt.Errorf("the image has %d layers, more than %d", n, maxLayers)
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

// pickTag returns the image of index.json with the tag or digest, or the only image when
// tag is empty.
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
		tags = append(tags, cmp.Or(name, d.Digest))
	}
	slices.Sort(tags)
	if tag == "" {
		return descriptor{}, fmt.Errorf("holds several images; add one of these as :TAG: %s", strings.Join(tags, ", "))
	}
	return descriptor{}, fmt.Errorf("holds no image %q, only %s", tag, strings.Join(tags, ", "))
}

// manifest follows desc through indexes to the manifest for a platform, and returns it
// with its digest.
func (open blobs) manifest(desc descriptor, platform Platform) (*document, string, error) {
	for range maxIndexDepth {
		var doc document
		if err := open.json(desc, &doc); err != nil {
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
			have = append(have, d.Platform.String())
			return platform.matches(*d.Platform)
		})
		switch {
		case i >= 0:
			desc = doc.Manifests[i]
		case len(have) == 0 && len(doc.Manifests) == 1:
			desc = doc.Manifests[0] // an index in an index; the image config has the platform
		default:
			return nil, "", fmt.Errorf("the image has no variant for %s, only for %s", platform, strings.Join(have, ", "))
		}
	}
	return nil, "", fmt.Errorf("more than %d image indexes inside each other", maxIndexDepth)
}

// layer returns layer i of n.
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
		// A damaged blob most often shows as a bad tar first. The digest explains more, so
		// read on to the end.
		if ctx.Err() == nil {
			_, _ = io.Copy(io.Discard, blob)
			err = cmp.Or(blob.damage, err)
		}
		return list, err
	}
	return layer.Layer{Name: name, Size: d.Size, Read: read}, nil
}

// blob opens a blob. Reading it to its end returns an error instead of io.EOF unless the
// digest is right.
func (open blobs) blob(d descriptor) (*verifier, error) {
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

// parseDigest returns the path of a blob and the hash that verifies it. It accepts only
// hex digits, and so no path such as "sha256:../../etc".
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

// verifier is a blob that checks its own digest.
type verifier struct {
	io.ReadCloser
	h      hash.Hash
	want   string
	damage error // the digest is wrong
}

func (v *verifier) Read(b []byte) (int, error) {
	n, err := v.ReadCloser.Read(b)
	v.h.Write(b[:n])
	if errors.Is(err, io.EOF) {
		alg, _, _ := strings.Cut(v.want, ":")
		if got := alg + ":" + hex.EncodeToString(v.h.Sum(nil)); got != v.want {
			v.damage = fmt.Errorf("blob %s is damaged: its content has %s", v.want, got)
			err = v.damage
		}
	}
	return n, err
}

// json decodes a blob.
func (open blobs) json(d descriptor, into any) error {
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

// cutTag splits PATH[:TAG]. When a file with the whole name exists, its colons are part of
// the path.
func cutTag(arg string) (path, tag string) {
	if _, err := os.Stat(arg); err == nil {
		return arg, ""
	}
	if i := strings.LastIndexByte(arg, ':'); i > 0 && !strings.Contains(arg[i:], "/") {
		return arg[:i], arg[i+1:]
	}
	return arg, ""
}
