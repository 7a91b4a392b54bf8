package buildcache

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"

	"drover/deploy/oci"
)

// preloader writes a layer with container images that are unpacked, see docs/images.md.
const preloader = nodeFiles + "/preload"

// PreloadedImage is [NodeImage] with the container images that a node of a hosted tenant
// runs: the add-ons, the agent of konnectivity, and those of the lab. They are unpacked, so
// that a node asks no registry for them. It returns an OCI layout with this one image.
func PreloadedImage(ctx context.Context, log io.Writer) (ociDir string, err error) {
	return pathOf(ctx, log, "preloaded", preloaded)
}

func preloaded(ctx context.Context, log io.Writer) (part, error) {
	root, err := SourceRoot()
	if err != nil {
		return part{}, err
	}
	key, err := hashFiles(root, preloader, "e2e/buildcache/preloaded.go", "e2e/buildcache/hosted.go", "deploy/oci/layout.go", "deploy/oci/archive.go")
	if err != nil {
		return part{}, err
	}
	agents, err := agentImages(ctx, root)
	if err != nil {
		return part{}, err
	}
	var parts []part
	keys := []string{key}
	for _, make := range []func(context.Context, io.Writer) (part, error){debian12.node, containerd, containers, konnectivity, addOnImages, webhook} {
		p, err := make(ctx, log)
		if err != nil {
			return part{}, err
		}
		parts, keys = append(parts, p), append(keys, p.key)
	}
	return part{kind: "preloaded", key: hashOf(keys...), make: func(ctx context.Context, dir string) error {
		from, err := paths(ctx, log, parts...)
		if err != nil {
			return err
		}
		work, err := os.MkdirTemp(filepath.Dir(dir), ".preloaded-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(work)
		agent := filepath.Join(work, "agent")
		if err := writeHosted(agent, []string{2: from[3]}, agents); err != nil {
			return err
		}
		return timed(log, "preloaded", func() error {
			layer := filepath.Join(work, "layer.tar")
			if err := preload(ctx, log, root, from[1], layer, []string{filepath.Join(from[2], bothArchive)}, agent, from[4], from[5]); err != nil {
				return err
			}
			return writePreloaded(dir, from[0], layer)
		})
	}}, nil
}

// agentImages returns the images of [hostedImages] that run on nodes.
func agentImages(ctx context.Context, root string) (map[string]hostedImage, error) {
	version, err := required(ctx, filepath.Join(root, "e2e/konnectivity"))
	if err != nil {
		return nil, err
	}
	images := hostedImages("v", "v", version["sigs.k8s.io/apiserver-network-proxy"])
	maps.DeleteFunc(images, func(_ string, img hostedImage) bool { return img.program != "proxy-agent" })
	return images, nil
}

// preload writes a layer with the images of archives and of OCI layouts, by the containerd of
// a folder. The layouts become archives beside the layer.
func preload(ctx context.Context, log io.Writer, root, containerd, layer string, archives []string, layouts ...string) error {
	for i, dir := range layouts {
		archive := fmt.Sprintf("%s.%d", layer, i)
		f, err := os.Create(archive)
		if err != nil {
			return err
		}
		if err := errors.Join(oci.Archive(f, dir), f.Close()); err != nil {
			return err
		}
		archives = append(archives, archive)
	}
	cmd := command(ctx, filepath.Join(root, preloader), append([]string{layer}, archives...)...)
	cmd.Env = append(os.Environ(), "PATH="+containerd+":"+os.Getenv("PATH"))
	return run(cmd, log)
}

// writePreloaded writes the image of the layout base with a layer more, and without the
// archive of the lab's images, which a node would import.
func writePreloaded(dir, base, layer string) error {
	f, err := os.Open(layer)
	if err != nil {
		return err
	}
	defer f.Close()
	l := oci.Layout{Dir: dir}
	above, err := l.Layer(func(t *tar.Writer) error {
		// A file with this name removes the one below.
		if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "opt/images/.wh." + bothArchive, Mode: 0o644}); err != nil {
			return err
		}
		return copyTar(t, f)
	})
	if err != nil {
		return err
	}
	if err := l.AddAbove("preloaded:"+NetworkTag, base, above); err != nil {
		return err
	}
	return l.Close()
}

// copyTar copies all entries of a tar.
func copyTar(to *tar.Writer, from io.Reader) error {
	t := tar.NewReader(from)
	for {
		h, err := t.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := to.WriteHeader(h); err != nil {
			return fmt.Errorf("%s: %w", h.Name, err)
		}
		if _, err := io.Copy(to, t); err != nil {
			return fmt.Errorf("%s: %w", h.Name, err)
		}
	}
}
