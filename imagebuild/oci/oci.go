// Package oci opens images in the OCI image layout: a directory with [OpenDir], a tar of
// one with [OpenArchive]; and the tars of docker save with [OpenDockerArchive]. It
// follows index.json to the manifest of a [Platform] and returns the image as a source
// of package layer.
//
// It verifies sizes and digests while it reads blobs. [Open] does the same with blobs
// from elsewhere: the package does not know registries.
package oci

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

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

// files opens a file of an image layout by its path, and returns its size in bytes.
type files func(name string) (io.ReadCloser, int64, error)

// Blobs opens the blob of a descriptor, and returns its size in bytes. The caller checks
// size and digest.
type Blobs func(d Descriptor) (io.ReadCloser, int64, error)

// Descriptor is a reference to a blob (image-spec, descriptor.md).
type Descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations"`
	Platform    *Platform         `json:"platform"`
}

// document is an index or a manifest; Docker's have the same fields.
type document struct {
	Manifests []Descriptor `json:"manifests"` // of an index
	Config    Descriptor   `json:"config"`    // of a manifest
	Layers    []Descriptor `json:"layers"`
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

func openLayout(open files, closer func() error, tag string, platform Platform) (*layer.Source, error) {
	s, err := layoutSource(open, tag, platform)
	if err != nil {
		return nil, errors.Join(err, closer())
	}
	s.Close = closer
	return s, nil
}

func layoutSource(open files, tag string, platform Platform) (*layer.Source, error) {
	var index document
	r, _, err := open("index.json")
	if err == nil {
		defer r.Close()
		err = json.NewDecoder(io.LimitReader(r, maxJSON)).Decode(&index)
	}
	if err != nil {
		return nil, fmt.Errorf("not an OCI image layout: index.json: %w", err)
	}
	blobs := func(d Descriptor) (io.ReadCloser, int64, error) {
		name, _, err := parseDigest(d.Digest)
		if err != nil {
			return nil, 0, err
		}
		return open(name)
	}
	return Open(blobs, index.Manifests, tag, platform)
}

// Open returns the image for a platform that one of the descriptors in list leads to:
// the one with the tag or digest, or the only one when tag is empty. The caller sets
// Close of the source.
func Open(open Blobs, list []Descriptor, tag string, platform Platform) (*layer.Source, error) {
	desc, err := pickTag(list, tag, platform)
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
	s, err := config.source(platform, len(manifest.Layers))
	if err != nil {
		return nil, err
	}
	s.Digest = digest
	for i, d := range manifest.Layers {
		l, err := open.layer(d, i+1, len(manifest.Layers))
		if err != nil {
			return nil, err
		}
		s.Layers = append(s.Layers, l)
	}
	return s, nil
}

// source returns a source for an image of n layers, without the layers, if the image is
// for the platform.
func (c *imageConfig) source(platform Platform, n int) (*layer.Source, error) {
	if !matches(platform, c.Platform) {
		return nil, fmt.Errorf("the image is for %s, not for %s (choose with --platform)", c.Platform, platform)
	}
	if n > maxLayers {
		return nil, fmt.Errorf("the image has %d layers, more than %d", n, maxLayers)
	}
	if ids := len(c.RootFS.DiffIDs); ids != n {
		return nil, fmt.Errorf("the manifest has %d layers, the image config %d", n, ids)
	}
	s := &layer.Source{}
	if c.Created != nil && c.Created.Unix() > 0 {
		s.Created = *c.Created
	}
	return s, nil
}

// pickTag returns the image of index.json with the tag or digest, or the only image when
// tag is empty. Several with one tag, or all without one, are the variants of one image
// for several platforms.
func pickTag(list []Descriptor, tag string, platform Platform) (Descriptor, error) {
	if len(list) == 0 {
		return Descriptor{}, errors.New("index.json lists no image")
	}
	var found []Descriptor
	names := map[string]bool{}
	for _, d := range list {
		name := d.Annotations[refName]
		names[cmp.Or(name, d.Digest)] = true
		if tag == "" || name == tag || d.Digest == tag {
			found = append(found, d)
		}
	}
	tags := strings.Join(slices.Sorted(maps.Keys(names)), ", ")
	if len(found) == 0 {
		return Descriptor{}, fmt.Errorf("holds no image %q, only %s", tag, tags)
	}
	if len(found) == 1 {
		return found[0], nil
	}
	first := found[0].Annotations[refName]
	for _, d := range found {
		switch {
		case d.Platform != nil && d.Annotations[refName] == first:
		case tag != "":
			return found[0], nil
		default:
			return Descriptor{}, fmt.Errorf("holds several images; add one of these as :TAG: %s", tags)
		}
	}
	return pickPlatform(found, platform)
}

// manifest follows desc through indexes to the manifest for a platform, and returns it
// with its digest.
func (open Blobs) manifest(desc Descriptor, platform Platform) (*document, string, error) {
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
		if len(doc.Manifests) == 1 && doc.Manifests[0].Platform == nil {
			desc = doc.Manifests[0] // an index in an index; the image config has the platform
			continue
		}
		var err error
		if desc, err = pickPlatform(doc.Manifests, platform); err != nil {
			return nil, "", err
		}
	}
	return nil, "", fmt.Errorf("more than %d image indexes inside each other", maxIndexDepth)
}

// layer returns layer i of n.
func (open Blobs) layer(d Descriptor, i, n int) (layer.Layer, error) {
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
			_, rest := io.Copy(io.Discard, blob) // of a registry, it has the wrong digest
			err = cmp.Or(blob.damage, rest, err)
		}
		return list, err
	}
	return layer.Layer{Name: name, Size: d.Size, Read: read}, nil
}

// blob opens a blob. Reading it to its end returns an error instead of io.EOF unless the
// digest is right.
func (open Blobs) blob(d Descriptor) (*verifier, error) {
	_, h, err := parseDigest(d.Digest)
	if err != nil {
		return nil, err
	}
	r, size, err := open(d)
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
	d, err := v1.NewHash(digest)
	if err != nil { // its text has no limit
		return "", nil, fmt.Errorf("digest %.160q is neither sha256 nor sha512, or is malformed", digest)
	}
	h, err := v1.Hasher(d.Algorithm)
	return "blobs/" + d.Algorithm + "/" + d.Hex, h, err
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
func (open Blobs) json(d Descriptor, into any) error {
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

// cutTag splits PATH[:TAG]. The longest path that exists counts: colons may be part of the
// path, and of the tag (localhost/node:1).
func cutTag(arg string) (path, tag string) {
	for i := len(arg); i > 0; i = strings.LastIndexByte(arg[:i], ':') {
		if _, err := os.Stat(arg[:i]); err == nil {
			return arg[:i], strings.TrimPrefix(arg[i:], ":")
		}
	}
	if i := strings.LastIndexByte(arg, ':'); i > 0 && !strings.Contains(arg[i:], "/") {
		return arg[:i], arg[i+1:]
	}
	return arg, ""
}
