// Package registry opens images in container registries.
//
// [Open] asks a registry for the manifest of an image and returns the image as a source
// of package layer. Package oci follows indexes and verifies all digests. Credentials are
// those of docker login, podman login and their helpers
// (~/.docker/config.json, or DOCKER_CONFIG; $XDG_RUNTIME_DIR/containers/auth.json).
//
// The package keeps nothing on disk, and never writes to a registry.
package registry

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"drover/imagebuild/layer"
	"drover/imagebuild/oci"
)

// maxManifest bounds a manifest, in bytes. Registries refuse larger ones.
const maxManifest = 4 << 20

// Open opens the image REGISTRY/NAME:TAG or REGISTRY/NAME@DIGEST; without a registry
// docker.io, without a tag latest. Registries on this host and in private networks by
// address may speak plain HTTP. The source reads until ctx ends.
func Open(ctx context.Context, ref string, platform oci.Platform) (*layer.Source, error) {
	image, err := name.ParseReference(ref)
	if err != nil {
		return nil, err
	}
	options := []remote.Option{
		remote.WithContext(ctx),
		remote.WithAuthFromKeychain(authn.DefaultKeychain),
		remote.WithTransport(bounded{remote.DefaultTransport}),
		remote.WithUserAgent("drover"),
	}
	puller, err := remote.NewPuller(options...) // one log-in for all requests
	if err != nil {
		return nil, err
	}
	r := repository{image.Context(), append(options, remote.Reuse(puller))}
	top, err := remote.Get(image, r.options...)
	if err != nil {
		return nil, err
	}
	desc := oci.Descriptor{MediaType: string(top.MediaType), Digest: top.Digest.String(), Size: int64(len(top.Manifest))}
	s, err := oci.Open(r.open, []oci.Descriptor{desc}, "", platform)
	if err != nil {
		return nil, err
	}
	s.Close = func() error { return nil }
	return s, nil
}

// repository opens the blobs of one repository.
type repository struct {
	name.Repository
	options []remote.Option
}

// open opens a manifest or a blob: registries have them at different places.
func (r repository) open(d oci.Descriptor) (io.ReadCloser, int64, error) {
	digest, err := name.NewDigest(r.Name() + "@" + d.Digest)
	if err != nil {
		return nil, 0, err
	}
	if isManifest(d.MediaType) {
		m, err := remote.Get(digest, r.options...)
		if err != nil {
			return nil, 0, err
		}
		return io.NopCloser(bytes.NewReader(m.Manifest)), int64(len(m.Manifest)), nil
	}
	blob, err := remote.Layer(digest, r.options...)
	if err != nil {
		return nil, 0, err
	}
	body, err := blob.Compressed()
	if err != nil {
		return nil, 0, err
	}
	// One byte more than announced is enough to have a wrong digest.
	return limited{io.LimitReader(body, d.Size+1), body}, d.Size, nil
}

// limited is a reader of a part of a body, and closes the body.
type limited struct {
	io.Reader
	io.Closer
}

// isManifest reports whether a media type is that of a manifest or an index, of OCI or of
// Docker.
func isManifest(mediaType string) bool {
	return strings.Contains(mediaType, "manifest") || strings.Contains(mediaType, "image.index")
}

// bounded is a transport that ends answers about manifests after maxManifest bytes.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.RoundTripper.RoundTrip(r)
	if err != nil || !strings.Contains(r.URL.Path, "/manifests/") {
		return answer, err
	}
	if answer.ContentLength > maxManifest {
		answer.Body.Close()
		return nil, fmt.Errorf("the registry's manifest has %d bytes, more than %d", answer.ContentLength, maxManifest)
	}
	answer.Body = limited{io.LimitReader(answer.Body, maxManifest), answer.Body}
	return answer, nil
}
