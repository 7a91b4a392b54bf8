package oci

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"drover/imagebuild/layer"
	"drover/imagebuild/rootfs"
)

// dockerImage is an entry of manifest.json in a tar of docker save or podman save.
type dockerImage struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// OpenDockerArchive opens FILE[:TAG], a tar of docker save or podman save. Its layers are
// verified by the digests of their contents in the image's config, and the config by its
// name.
func OpenDockerArchive(arg string, platform Platform) (*layer.Source, error) {
	name, tag := cutTag(arg)
	a, err := openTar(name)
	if err != nil {
		return nil, err
	}
	s, err := a.docker(tag, platform)
	if err != nil {
		return nil, errors.Join(err, a.file.Close())
	}
	s.Close = a.file.Close
	return s, nil
}

func (a *archive) docker(tag string, platform Platform) (*layer.Source, error) {
	var list []dockerImage
	if _, err := a.json("manifest.json", &list); err != nil {
		return nil, fmt.Errorf("not a tar of docker save: %w", err)
	}
	image, err := pickRepoTag(list, tag)
	if err != nil {
		return nil, err
	}
	var config imageConfig
	sum, err := a.json(image.Config, &config)
	if err != nil {
		return nil, fmt.Errorf("image config: %w", err)
	}
	// Its name is HASH.json, or blobs/sha256/HASH since Docker 25.
	want := strings.TrimSuffix(path.Base(image.Config), ".json")
	if len(want) == len(sum) && want != sum {
		return nil, fmt.Errorf("image config: %s is damaged: its content has sha256:%s", image.Config, sum)
	}
	s, err := config.source(platform, len(image.Layers))
	if err != nil {
		return nil, err
	}
	s.Digest = "sha256:" + sum
	for i, file := range image.Layers {
		l, err := a.layer(file, config.RootFS.DiffIDs[i], fmt.Sprintf("layer %d of %d", i+1, len(image.Layers)))
		if err != nil {
			return nil, err
		}
		s.Layers = append(s.Layers, l)
	}
	return s, nil
}

// pickRepoTag returns the image with a tag, NAME:TAG or the last part of one, or the only
// image when tag is empty.
func pickRepoTag(list []dockerImage, tag string) (dockerImage, error) {
	if tag == "" && len(list) == 1 {
		return list[0], nil
	}
	var tags []string
	var found []dockerImage
	for _, image := range list {
		tags = append(tags, image.RepoTags...)
		if tag != "" && slices.ContainsFunc(image.RepoTags, func(t string) bool { return t == tag || strings.HasSuffix(t, ":"+tag) }) {
			found = append(found, image)
		}
	}
	slices.Sort(tags)
	switch {
	case len(list) == 0:
		return dockerImage{}, errors.New("manifest.json lists no image")
	case len(found) == 1:
		return found[0], nil
	case tag == "" || len(found) > 1:
		return dockerImage{}, fmt.Errorf("holds several images; add one of these as :TAG: %s", strings.Join(tags, ", "))
	}
	return dockerImage{}, fmt.Errorf("holds no image %q, only %s", tag, strings.Join(tags, ", "))
}

// json decodes a file of the archive and returns its SHA-256 in hex.
func (a *archive) json(name string, into any) (string, error) {
	r, size, err := a.open(name)
	if err != nil {
		return "", err
	}
	defer r.Close()
	if size > maxJSON {
		return "", fmt.Errorf("%s: %d bytes is not a sensible size", name, size)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}

// layer returns a layer whose decompressed content has a digest.
func (a *archive) layer(file, diffID, name string) (layer.Layer, error) {
	if _, _, err := parseDigest(diffID); err != nil {
		return layer.Layer{}, fmt.Errorf("%s: %w", name, err)
	}
	_, size, err := a.open(file)
	if err != nil {
		return layer.Layer{}, fmt.Errorf("%s: %w", name, err)
	}
	read := func(ctx context.Context, l *layer.Reader, progress func(int64)) ([]rootfs.Entry, error) {
		r, _, err := a.open(file)
		if err != nil {
			return nil, err
		}
		defer r.Close()
		_, h, err := parseDigest(diffID)
		if err != nil {
			return nil, err
		}
		l.Whiteouts = true
		list, err := l.StreamTo(ctx, h, r, progress)
		if err != nil {
			return nil, err
		}
		alg, _, _ := strings.Cut(diffID, ":")
		if got := alg + ":" + hex.EncodeToString(h.Sum(nil)); got != diffID {
			return nil, fmt.Errorf("%s is damaged: its content has %s instead of %s", file, got, diffID)
		}
		return list, nil
	}
	return layer.Layer{Name: name, Size: size, Read: read}, nil
}
